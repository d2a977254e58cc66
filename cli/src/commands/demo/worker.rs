//! The demo's worker: a process of its own, started, watched and stopped.

use crate::exit::Failure;
use anyhow::Context;
use clap::Args;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

/// The worker's program, beside our own.
const PROGRAM: &str = "landing-zone";
/// A worker drains within this when asked to.
const DRAIN: Duration = Duration::from_secs(5);
/// What is kept of what the worker says, for the case that it ends unasked.
const TAIL_LINES: usize = 20;

/// How the demo's providers behave.
#[derive(Debug, Args)]
pub struct Knobs {
    /// How long each outside call takes
    #[arg(long, value_name = "MS", default_value_t = 0)]
    latency_ms: u64,
    /// Share of outside calls that fail and must be tried again
    #[arg(long, value_name = "0..1", default_value_t = 0.0, value_parser = share)]
    fault_rate: f64,
    /// Write every outside effect to this file, one a line
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Tasks that the worker runs at once
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a share between 0 and 1")),
    }
}

/// A running worker. Dropping it kills the process.
pub struct Worker {
    child: Child,
    tail: Arc<Mutex<VecDeque<String>>>,
}

impl Worker {
    /// Starts the program next to this one.
    ///
    /// # Errors
    /// When it is not there or cannot be started.
    pub fn start(broker: SocketAddr, knobs: &Knobs) -> anyhow::Result<Self> {
        let program =
            std::env::current_exe().context("cannot find this program's folder")?.with_file_name(PROGRAM);
        let mut command = Command::new(&program);
        command
            .env("BROKER_ADDR", format!("http://{broker}"))
            .env("DEMO_LATENCY_MS", knobs.latency_ms.to_string())
            .env("DEMO_FAULT_RATE", knobs.fault_rate.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(ledger) = &knobs.ledger {
            command.env("DEMO_LEDGER", ledger);
        }
        if let Some(parallel) = knobs.parallel {
            command.env("WORKER_MAX_PARALLEL", parallel.to_string());
        }
        let mut child = command.spawn().with_context(|| {
            format!("cannot start {}; `cargo build -p landing-zone` makes it", program.display())
        })?;
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(keep_tail(stderr, Arc::clone(&tail)));
        }
        Ok(Self { child, tail })
    }

    /// Completes when the worker has ended, which nobody asked for.
    pub async fn ended(&mut self) -> Failure {
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: String = tail.iter().fold(String::new(), |lines, line| lines + "\n  " + line);
        anyhow::anyhow!("the worker ended by itself ({status}){lines}").into()
    }

    /// Lets the worker finish what it holds, then ends it.
    pub async fn stop(mut self) {
        // The child is not reaped before `wait`, so its number cannot be anybody else's yet.
        let pid = self.child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        if tokio::time::timeout(DRAIN, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

/// Reads to the end, always: a full pipe would stop the worker.
async fn keep_tail(stream: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(target: "landing_zone", "{line}");
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_rate_is_a_share() {
        assert_eq!(share("0.2"), Ok(0.2));
        for nonsense in ["1.1", "-0.1", "NaN", "many"] {
            assert!(share(nonsense).is_err(), "{nonsense}");
        }
    }
}
