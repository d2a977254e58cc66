//! The two processes of a run: this very program as a server, and as the worker that does nothing. They are killed when
//! the run is dropped.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use super::worker::{KIND, NOOP_WORKER};
use crate::client::model::SummaryAnswer;
use crate::client::{Client, operations};

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(20);

/// A server that answers and a worker that was started.
pub struct Processes {
    server: Child,
    worker: Child,
    http: String,
    logs: tempfile::TempDir,
}

impl Processes {
    /// Starts both, and waits until the server answers. The worker connects by itself.
    pub async fn start(database_url: &str, max_parallel: u32) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let logs = tempfile::tempdir().context("cannot make a directory for the logs")?;
        let (http, broker) = (free_address().await?, free_address().await?);
        let mut server = command(&program, &logs, "server")?;
        server
            .args(["serve", "--role", "all", "--listen", &http, "--broker-listen", &broker])
            // By environment, so that a password does not stand in the list of processes.
            .env("DATABASE_URL", database_url);
        let server = server.spawn().context("cannot start the server")?;
        let mut worker = command(&program, &logs, "worker")?;
        worker
            .arg(NOOP_WORKER)
            .env("BROKER_ADDR", format!("http://{broker}"))
            .env("WORKER_MAX_PARALLEL", max_parallel.to_string())
            .env_remove("DATABASE_URL");
        let worker = worker.spawn().context("cannot start the worker")?;
        let mut processes = Self { server, worker, http: format!("http://{http}"), logs };
        processes.ready().await?;
        Ok(processes)
    }

    /// A client of the server.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.http)?)
    }

    pub fn server_pid(&self) -> anyhow::Result<u32> {
        self.server.id().context("the server has ended")
    }

    pub fn worker_pid(&self) -> anyhow::Result<u32> {
        self.worker.id().context("the worker has ended")
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_MAX;
        let address = format!("{}/readyz", self.http);
        while !reqwest::get(&address).await.is_ok_and(|answer| answer.status().is_success()) {
            if let Some(status) = self.server.try_wait()? {
                bail!("the server ended ({status}):\n{}", self.tail("server"));
            }
            ensure!(Instant::now() < deadline, "the server is not ready:\n{}", self.tail("server"));
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits until `n` leaves are Ready. The summary is a read model that follows the log; what it shows is true, if a
    /// moment late, so the time measured is an upper bound.
    pub async fn all_ready(&self, n: u32, start: Instant, timeout_seconds: u64) -> anyhow::Result<()> {
        let client = self.client()?;
        let timeout = Duration::from_secs(timeout_seconds);
        loop {
            let answer: SummaryAnswer =
                client.ask(operations::SUMMARY, serde_json::json!({ "root": null })).await?;
            let of = |phase: &str| {
                let counts =
                    answer.summary.counts.iter().filter(|count| count.kind == KIND && count.phase == phase);
                counts.map(|count| count.count).sum::<u64>()
            };
            if of("Ready") == u64::from(n) {
                return Ok(());
            }
            ensure!(of("Failed") == 0, "{} leaves have failed", of("Failed"));
            ensure!(
                start.elapsed() < timeout,
                "{} of {n} were Ready after {timeout_seconds} s; server:\n{}\nworker:\n{}",
                of("Ready"),
                self.tail("server"),
                self.tail("worker")
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// Stops the worker, then the server, in order.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        for (name, child) in [("worker", &mut self.worker), ("server", &mut self.server)] {
            // Not reaped before `wait`, so the number is still its own.
            if let Some(pid) = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
                rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
            }
            match tokio::time::timeout(STOP_MAX, child.wait()).await {
                Ok(status) => drop(status?),
                Err(_) => bail!("the {name} does not stop"),
            }
        }
        Ok(())
    }

    fn tail(&self, name: &str) -> String {
        let text = std::fs::read_to_string(log_path(&self.logs, name)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

fn log_path(logs: &tempfile::TempDir, name: &str) -> PathBuf {
    logs.path().join(format!("{name}.log"))
}

/// A run of this program that is killed with us and whose words go to a file: a terminal would slow it down.
fn command(program: &std::path::Path, logs: &tempfile::TempDir, name: &str) -> anyhow::Result<Command> {
    let log = File::create(log_path(logs, name)).context("cannot make a log")?;
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
    Ok(command)
}

/// An address that was free a moment ago. The server is asked to listen there, and says so if somebody was faster.
async fn free_address() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on 127.0.0.1")?;
    Ok(listener.local_addr()?.to_string())
}
