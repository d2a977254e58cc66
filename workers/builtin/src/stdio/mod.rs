//! The `stdio` provider: any program becomes a kind.
//!
//! One run per task: a JSON object on standard input, one on standard output, and the exit status says the rest.

mod answer;
mod question;

use crate::program::{Program, ProgramError, said};
use answer::Answer;
use converge_sdk::{Outcome, Provider, Request, TaskError, async_trait, effective_config, terminal};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The exit status that means "no retry can help".
const TERMINAL_EXIT: i32 = 2;

/// See the module.
pub struct Stdio {
    /// None: every kind whose manifest says `provider: stdio`.
    kind: Option<String>,
}

/// What the kind's provider config holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// 0 or absent: the task's deadline alone.
    #[serde(default)]
    timeout_seconds: f64,
    /// All that the program sees of the config.
    #[serde(default)]
    settings: Option<Value>,
}

impl Stdio {
    /// For every kind whose manifest names the provider `stdio`.
    pub fn by_name() -> Self {
        Self { kind: None }
    }

    /// For one kind by its name; its manifest names no provider.
    pub fn for_kind(kind: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()) }
    }
}

#[async_trait]
impl Provider for Stdio {
    fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("stdio")
    }

    fn provider(&self) -> Option<&str> {
        self.kind.is_none().then_some("stdio")
    }

    async fn work(&self, mut request: Request) -> Result<Outcome, TaskError> {
        let config = config(&request)?;
        let stdin = question::write(&mut request, config.settings.as_ref()).await?;
        let timeout = Duration::try_from_secs_f64(config.timeout_seconds)
            .map_err(|error| terminal(format!("timeout_seconds: {error}")))?;
        let timeout = [Some(timeout).filter(|timeout| !timeout.is_zero()), request.time_left()];
        let program = Program {
            command: config.command.into(),
            args: config.args.into_iter().map(Into::into).collect(),
            env: config.env,
            stdin,
            timeout: timeout.into_iter().flatten().min(),
        };
        let label = format!("{}/{}", request.kind, request.name);
        let finished = program.run(&label, &request.cancelled).await.map_err(failed)?;
        let answer = Answer::read(&finished.stdout);
        if finished.status.success() {
            return answer?.outcome();
        }
        let how = match finished.status.code() {
            Some(code) => format!("exit status {code}"),
            // Killed by a signal.
            None => finished.status.to_string(),
        };
        let message = format!("{how}{}", said(&finished.stderr_tail));
        let error = match finished.status.code() {
            Some(TERMINAL_EXIT) => terminal(message),
            _ => TaskError::transient(message),
        };
        // Whatever else a failing program printed, its status is what it wants remembered.
        Err(match answer.ok().and_then(|answer| answer.status) {
            Some(status) => error.with_status(status),
            None => error,
        })
    }
}

/// A program that floods its output will do so again; anything else may go better the next time.
pub(crate) fn failed(error: ProgramError) -> TaskError {
    match error {
        ProgramError::TooMuchOutput => terminal(error),
        _ => TaskError::transient(error.to_string()),
    }
}

fn config(request: &Request) -> Result<Config, TaskError> {
    if request.default_config.is_none() && request.config_override.is_none() {
        let (kind, version) = (&request.kind, request.kind_version);
        return Err(terminal(format!("{kind}/v{version} has no provider config that names a command")));
    }
    let merged = effective_config(Some(&request.effective_config()?), None);
    Config::deserialize(merged).map_err(|error| terminal(format!("the kind's provider config: {error}")))
}
