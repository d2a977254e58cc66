//! Running someone else's program without being hurt by it.
//!
//! A program may hang, fork, flood its outputs or ignore its input. Each run has a process group of its own, a time, and
//! bounded outputs; whichever is exceeded, the whole group is ended.

mod group;
mod output;

use group::Group;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Most bytes of standard output that are taken.
pub(crate) const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long after a program's end its outputs may stay open, held by children that it left behind.
const LINGER: Duration = Duration::from_secs(1);
/// Variables of the worker that programs get too. The rest, which may hold the worker's own secrets, they do not.
const INHERITED: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// What to run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) command: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) stdin: Vec<u8>,
    /// None: as long as it takes.
    pub(crate) timeout: Option<Duration>,
}

/// How a run ended by itself.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// The end of standard error.
    pub(crate) stderr_tail: String,
}

/// How a run ended otherwise.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("`{command}` cannot be started: {error}")]
    Start { command: String, error: std::io::Error },
    #[error("timed out after {} s{}", .after.as_secs_f64(), said(.stderr_tail))]
    TimedOut { after: Duration, stderr_tail: String },
    #[error("printed more than {OUTPUT_BYTES_MAX} bytes to its standard output")]
    TooMuchOutput,
    #[error("cancelled")]
    Cancelled,
    #[error("its outputs or its end could not be read: {0}")]
    Io(#[from] std::io::Error),
}

/// A message's second half: what the program said on standard error.
pub(crate) fn said(stderr_tail: &str) -> String {
    match stderr_tail.trim() {
        "" => String::new(),
        tail => format!(": {tail}"),
    }
}

impl Program {
    /// Runs it to its end, its timeout, its limit or `cancelled`. Dropping the future ends the whole group too.
    pub(crate) async fn run(
        self,
        label: &str,
        cancelled: &CancellationToken,
    ) -> Result<Finished, ProgramError> {
        let mut child = Command::new(&self.command)
            .args(&self.args)
            .env_clear()
            .envs(INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| ProgramError::Start {
                command: self.command.to_string_lossy().into_owned(),
                error,
            })?;
        // From here on, whatever happens to this future, the group ends with it.
        let mut group = Group::of(&child);
        let mut stdin = child.stdin.take();
        let input = self.stdin;
        // A program that does not read its input closes the pipe; that is its right.
        let feed = tokio::spawn(async move {
            if let Some(stdin) = &mut stdin {
                let _ = stdin.write_all(&input).await;
            }
        });
        let stdout = output::Stdout::collect(child.stdout.take());
        let stderr = output::Stderr::follow(child.stderr.take(), label.to_owned());
        let timeout = async {
            match self.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            status = child.wait() => Ok(status?),
            () = stdout.overflowed() => Err(ProgramError::TooMuchOutput),
            () = cancelled.cancelled() => Err(ProgramError::Cancelled),
            () = timeout => {
                let after = self.timeout.unwrap_or_default();
                Err(ProgramError::TimedOut { after, stderr_tail: String::new() })
            }
        };
        feed.abort();
        match ended {
            Ok(status) => {
                // Children that the program left behind may hold its outputs open. They get a moment, then they end.
                let closed = async { tokio::join!(stdout.closed(), stderr.closed()) };
                if tokio::time::timeout(LINGER, closed).await.is_err() {
                    group.kill();
                }
                group.reaped();
                if stdout.has_overflowed() {
                    return Err(ProgramError::TooMuchOutput);
                }
                Ok(Finished { status, stdout: stdout.take(), stderr_tail: stderr.tail() })
            }
            Err(mut error) => {
                group.end(&mut child).await;
                if let ProgramError::TimedOut { stderr_tail, .. } = &mut error {
                    *stderr_tail = stderr.tail();
                }
                Err(error)
            }
        }
    }
}
