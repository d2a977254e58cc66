//! One run of one script.

use crate::program::{Program, said};
use converge_sdk::{Request, TaskError, terminal};
use std::collections::BTreeMap;
use std::time::Duration;

/// How much of the end of standard output is kept in the status.
const STDOUT_BYTES_KEPT: usize = 16 * 1024;
/// The exit status that means "no retry can help", as for `stdio`.
const TERMINAL_EXIT: i32 = 2;

/// What to run, and how.
pub(super) struct Script<'a> {
    pub(super) text: &'a str,
    pub(super) interpreter: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) timeout_seconds: f64,
}

/// How it went.
pub(super) struct Ran {
    /// None: killed by a signal.
    pub(super) code: Option<i32>,
    how: String,
    stdout: String,
    stderr_tail: String,
}

impl Script<'_> {
    /// Runs it from a file of its own, because not every interpreter takes a program as an argument, and because `ps`
    /// should not show it.
    pub(super) async fn run(&self, request: &Request) -> Result<Ran, TaskError> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("script");
        tokio::fs::write(&file, self.text).await?;
        let mut env = BTreeMap::from([
            ("CONVERGE_ID".to_owned(), request.id.clone()),
            ("CONVERGE_NAME".to_owned(), request.name.clone()),
            ("CONVERGE_GENERATION".to_owned(), request.generation.to_string()),
            ("CONVERGE_IDEMPOTENCY_KEY".to_owned(), request.idempotency_key.clone()),
        ]);
        env.extend(self.env.clone());
        let timeout = Duration::try_from_secs_f64(self.timeout_seconds)
            .map_err(|error| terminal(format!("timeout_seconds: {error}")))?;
        let timeouts = [Some(timeout).filter(|timeout| !timeout.is_zero()), request.time_left()];
        let program = Program {
            command: self.interpreter.into(),
            args: std::iter::once(file.into()).chain(self.args.iter().map(Into::into)).collect(),
            env,
            stdin: Vec::new(),
            timeout: timeouts.into_iter().flatten().min(),
        };
        let label = format!("{}/{}", request.kind, request.name);
        let finished = program.run(&label, &request.cancelled).await.map_err(crate::stdio::failed)?;
        let kept = finished.stdout.len().saturating_sub(STDOUT_BYTES_KEPT);
        Ok(Ran {
            code: finished.status.code(),
            how: finished.status.to_string(),
            stdout: String::from_utf8_lossy(finished.stdout.get(kept..).unwrap_or_default()).into_owned(),
            stderr_tail: finished.stderr_tail,
        })
    }
}

impl Ran {
    /// What it printed, or the failure that its exit means.
    pub(super) fn succeeded(self) -> Result<String, TaskError> {
        match self.code {
            Some(0) => Ok(self.stdout),
            Some(TERMINAL_EXIT) => Err(terminal(format!("exit status 2{}", said(&self.stderr_tail)))),
            Some(code) => Err(TaskError::transient(format!("exit status {code}{}", said(&self.stderr_tail)))),
            None => Err(TaskError::transient(format!("{}{}", self.how, said(&self.stderr_tail)))),
        }
    }
}
