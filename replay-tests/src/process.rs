//! One child process: its words in a file, its end in our hands.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long an orderly end may take before it is forced.
const STOP_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// A running program. Dropping it ends it in order, so that an embedded PostgreSQL goes with its server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, with everything it says appended to `log`.
    pub fn start(command: &mut Command, log: PathBuf) -> Self {
        let file = File::options().create(true).append(true).open(&log).expect("a log file");
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        Self { child, log }
    }

    /// Starts `command` with its answer, line by line, for the caller to read.
    pub fn start_answering(command: &mut Command, log: PathBuf) -> (Self, Lines<BufReader<ChildStdout>>) {
        let file = File::options().create(true).append(true).open(&log).expect("a log file");
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        (Self { child, log }, lines)
    }

    /// SIGKILL: it gets no chance to say or finish anything. Returns when the kernel has buried it.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("a killed child can be waited for");
    }

    /// SIGTERM, and waits for the end.
    pub fn stop(mut self) {
        self.end();
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The last words.
    pub fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }

    // The child is not reaped before `wait`, so its number is still its own.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, signal);
        }
    }

    fn end(&mut self) {
        if !self.runs() {
            return;
        }
        self.signal(Signal::TERM);
        let deadline = Instant::now() + STOP_MAX;
        while self.runs() {
            if Instant::now() > deadline {
                self.signal(Signal::KILL);
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
