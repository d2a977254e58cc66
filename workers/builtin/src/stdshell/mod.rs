//! The `stdshell` provider: a script that a resource carries in its spec.
//!
//! A script is an unconditional command, and unconditional commands do not converge. `check` makes one converge: when it
//! exits 0 the outcome already holds, the script is skipped, and the task says that nothing changed. `teardown`, when
//! given, runs on deletion; without it, deleting the resource leaves the world as the script left it.

mod script;

use converge_sdk::{Outcome, Provider, Reaction, Request, TaskError, async_trait, terminal};
use script::{Ran, Script};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// See the module.
pub struct StdShell;

/// A `stdshell` spec; the kind's schema describes each field.
#[derive(Debug, Deserialize)]
struct Spec {
    script: String,
    #[serde(default = "default_interpreter")]
    interpreter: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    timeout_seconds: f64,
    check: Option<String>,
    teardown: Option<String>,
}

fn default_interpreter() -> String {
    "/bin/sh".to_owned()
}

#[async_trait]
impl Provider for StdShell {
    fn kind(&self) -> &str {
        "stdshell"
    }

    async fn work(&self, request: Request) -> Result<Outcome, TaskError> {
        let spec: Spec = request.spec.parse()?;
        match request.reaction {
            Reaction::Work => work(&spec, &request).await,
            Reaction::Observe => match &spec.check {
                Some(check) if !holds(&spec, check, &request).await? => {
                    Ok(Outcome::new().changed(false).differs(["/spec/check".to_owned()]))
                }
                _ => Ok(Outcome::new().changed(false)),
            },
            Reaction::Teardown => {
                if let Some(teardown) = &spec.teardown {
                    script(&spec, teardown).run(&request).await?.succeeded()?;
                }
                Ok(Outcome::new())
            }
            other => Err(terminal(format!("stdshell has no reaction `{}`", other.as_str()))),
        }
    }
}

async fn work(spec: &Spec, request: &Request) -> Result<Outcome, TaskError> {
    if let Some(check) = &spec.check
        && holds(spec, check, request).await?
    {
        let outcome = Outcome::new().changed(false);
        // A status that is left out keeps what the last run reported: skipping must not look like a change.
        return Ok(match request.status {
            Some(_) => outcome,
            None => outcome.status(json!({ "exit_code": 0, "stdout": "" })),
        });
    }
    let stdout = script(spec, &spec.script).run(request).await?.succeeded()?;
    Ok(Outcome::new().status(json!({ "exit_code": 0, "stdout": stdout })).changed(true))
}

/// Whether the guard says that there is nothing to do. Any exit other than 0 means that there is; a guard that cannot be
/// run at all fails the task, since "cannot tell" is not "must run".
async fn holds(spec: &Spec, check: &str, request: &Request) -> Result<bool, TaskError> {
    let Ran { code, .. } = script(spec, check).run(request).await?;
    Ok(code == Some(0))
}

fn script<'a>(spec: &'a Spec, text: &'a str) -> Script<'a> {
    Script {
        text,
        interpreter: &spec.interpreter,
        args: &spec.args,
        env: &spec.env,
        timeout_seconds: spec.timeout_seconds,
    }
}
