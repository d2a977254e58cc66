//! What a program prints on its standard output.

use converge_sdk::{Composition, Condition, Json, Outcome, TaskError, terminal};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// One JSON object with any of these; nothing at all is an empty one. A field with another name is an error: a misspelt
/// `children` must not prune everything.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Answer {
    #[serde(deserialize_with = "object")]
    pub(super) status: Option<Json>,
    conditions: Option<Vec<Condition>>,
    healthy: Option<bool>,
    children: Vec<Box<RawValue>>,
    edges: Vec<Box<RawValue>>,
    configs: Vec<Box<RawValue>>,
    output: Option<Box<RawValue>>,
    changed: Option<bool>,
    differs: Vec<String>,
    in_progress: bool,
    requeue_after_secs: Option<u32>,
    apply: Vec<Box<RawValue>>,
}

fn object<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    let Some(raw) = Option::<Box<RawValue>>::deserialize(deserializer)? else { return Ok(None) };
    if raw.get().starts_with('{') {
        Ok(Some(raw.into()))
    } else {
        Err(serde::de::Error::custom("status must be an object"))
    }
}

impl Answer {
    /// # Errors
    /// Transient: the program may have been interrupted while it wrote.
    pub(super) fn read(stdout: &[u8]) -> Result<Self, TaskError> {
        if stdout.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(stdout).map_err(|error| {
            let start = String::from_utf8_lossy(stdout.get(..80.min(stdout.len())).unwrap_or_default());
            TaskError::transient(format!(
                "the program's output is not an answer: {error}; it starts `{start}`"
            ))
        })
    }

    pub(super) fn outcome(self) -> Result<Outcome, TaskError> {
        if !self.apply.is_empty() {
            return Err(terminal("`apply` is not taken from workers by this version"));
        }
        let after = self.requeue_after_secs.map(|secs| Duration::from_secs(secs.into()));
        let mut outcome = match (self.in_progress, after) {
            (true, after) => Outcome::in_progress(after.unwrap_or_default()),
            (false, Some(after)) => Outcome::new().requeue_after(after),
            (false, None) => Outcome::new(),
        };
        outcome = outcome.differs(self.differs).composition(Composition::raw(
            self.children,
            self.edges,
            self.configs,
        ));
        if let Some(status) = self.status {
            outcome = outcome.status(status);
        }
        if let Some(conditions) = self.conditions {
            outcome = outcome.conditions(conditions);
        }
        if let Some(healthy) = self.healthy {
            outcome = outcome.healthy(healthy);
        }
        if let Some(changed) = self.changed {
            outcome = outcome.changed(changed);
        }
        if let Some(output) = self.output {
            outcome = outcome.output(output);
        }
        Ok(outcome)
    }
}
