//! The two processes of a run: this very program as a server, and as the worker that does nothing. They are killed when
//! the run is dropped.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use super::cost::cpu_seconds;
use super::worker::{self, NOOP_WORKER};
use crate::client::Client;

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(20);

/// A server that answers and a worker that was started.
pub struct Processes {
    server: Child,
    worker: Child,
    launch: Launch,
    pids: Arc<Pids>,
    http: String,
    logs: tempfile::TempDir,
}

/// Which processes they are; the worker may change while somebody looks.
#[derive(Debug)]
pub struct Pids {
    server: u32,
    worker: AtomicU32,
    /// Microseconds of processor time that workers before this one have used.
    ended_workers_us: AtomicU64,
}

/// How a worker is started.
struct Launch {
    program: PathBuf,
    broker: String,
    max_parallel: u32,
    ledger: Option<PathBuf>,
}

impl Processes {
    /// Starts both, and waits until the server answers. The worker connects by itself; it writes each of its effects to
    /// `ledger`.
    pub async fn start(database_url: &str, max_parallel: u32, ledger: Option<&Path>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let logs = tempfile::tempdir().context("cannot make a directory for the logs")?;
        let (http, broker) = (free_address().await?, free_address().await?);
        let mut server = command(&program, &logs, "server")?;
        server
            .args(["serve", "--role", "all", "--listen", &http, "--broker-listen", &broker])
            // By environment, so that a password does not stand in the list of processes.
            .env("DATABASE_URL", database_url);
        let server = server.spawn().context("cannot start the server")?;
        let launch = Launch { program, broker, max_parallel, ledger: ledger.map(Path::to_owned) };
        let worker = launch.worker(&logs)?;
        let pids = Arc::new(Pids {
            server: server.id().context("the server has ended")?,
            worker: AtomicU32::new(worker.id().context("the worker has ended")?),
            ended_workers_us: AtomicU64::new(0),
        });
        let http = format!("http://{http}");
        let mut processes = Self { server, worker, launch, pids, http, logs };
        processes.ready().await?;
        Ok(processes)
    }

    /// The server's address.
    pub fn http(&self) -> &str {
        &self.http
    }

    /// A client of the server.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.http)?)
    }

    /// Which processes they are.
    pub fn pids(&self) -> Arc<Pids> {
        Arc::clone(&self.pids)
    }

    fn worker_pid(&self) -> anyhow::Result<u32> {
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

    /// Kills the worker as nothing can be handled, and starts another.
    pub async fn replace_worker(&mut self) -> anyhow::Result<()> {
        let spent = cpu_seconds(self.worker_pid()?);
        self.worker.kill().await.context("cannot kill the worker")?;
        self.worker = self.launch.worker(&self.logs)?;
        self.pids.worker_replaced(self.worker_pid()?, spent);
        Ok(())
    }

    /// The last words of both, for a message.
    pub fn words(&self) -> String {
        format!("server:\n{}\nworker:\n{}", self.tail("server"), self.tail("worker"))
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

impl Launch {
    fn worker(&self, logs: &tempfile::TempDir) -> anyhow::Result<Child> {
        let mut worker = command(&self.program, logs, "worker")?;
        worker
            .arg(NOOP_WORKER)
            .env("BROKER_ADDR", format!("http://{}", self.broker))
            .env("WORKER_MAX_PARALLEL", self.max_parallel.to_string())
            .env_remove("DATABASE_URL");
        if let Some(ledger) = &self.ledger {
            worker.env(worker::LEDGER_ENV, ledger);
        }
        worker.spawn().context("cannot start the worker")
    }
}

impl Pids {
    pub const fn server(&self) -> u32 {
        self.server
    }

    pub fn worker(&self) -> u32 {
        self.worker.load(Ordering::Relaxed)
    }

    /// Of all workers of this run.
    pub fn worker_cpu_seconds(&self) -> f64 {
        let ended = Duration::from_micros(self.ended_workers_us.load(Ordering::Relaxed));
        cpu_seconds(self.worker()) + ended.as_secs_f64()
    }

    fn worker_replaced(&self, pid: u32, spent_seconds: f64) {
        let micros = Duration::from_secs_f64(spent_seconds).as_micros();
        self.ended_workers_us.fetch_add(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.worker.store(pid, Ordering::Relaxed);
    }
}

fn log_path(logs: &tempfile::TempDir, name: &str) -> PathBuf {
    logs.path().join(format!("{name}.log"))
}

/// A run of this program that is killed with us and whose words go to a file: a terminal would slow it down.
fn command(program: &Path, logs: &tempfile::TempDir, name: &str) -> anyhow::Result<Command> {
    let log = OpenOptions::new().create(true).append(true).open(log_path(logs, name));
    let log = log.context("cannot make a log")?;
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
    Ok(command)
}

/// An address that was free a moment ago. The server is asked to listen there, and says so if somebody was faster.
async fn free_address() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on 127.0.0.1")?;
    Ok(listener.local_addr()?.to_string())
}
