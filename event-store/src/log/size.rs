//! Rough sizes of commands and states, to bound queues and the cache without serialising anything.

use converge_domain::resource::{Outcome, ResourceCommand, ResourceState};
use converge_domain::{AnyCommand, AnyState};
use serde_json::Value;

/// What a small command or state takes with its bookkeeping.
const BASE: usize = 700;

/// Approximate bytes of a command.
pub(super) fn command_bytes(command: &AnyCommand) -> usize {
    BASE + match command {
        AnyCommand::Resource(ResourceCommand::Declare(declare) | ResourceCommand::Redeclare(declare)) => {
            json_bytes(&declare.spec) + declare.edges.len() * 200 + declare.labels.len() * 60
        }
        AnyCommand::Resource(ResourceCommand::RecordOutcome(record)) => match &record.outcome {
            Outcome::Succeeded(succeeded) | Outcome::Composition { succeeded, .. } => {
                succeeded.status.as_deref().map_or(0, json_bytes)
            }
            Outcome::InProgress { status, .. } | Outcome::Failed { status, .. } => {
                status.as_deref().map_or(0, json_bytes)
            }
        },
        AnyCommand::Resource(ResourceCommand::Evaluate(evaluate)) => evaluate.upstreams.len() * 120,
        // Manifests carry schemas.
        AnyCommand::Kind(_) => 8_000,
        _ => 0,
    }
}

/// Approximate bytes of a cached state.
pub(super) fn state_bytes(state: &AnyState) -> usize {
    BASE + match state {
        AnyState::Resource(state) => resource_bytes(state),
        AnyState::Kind(_) => 8_000,
        _ => 1_000,
    }
}

fn resource_bytes(state: &ResourceState) -> usize {
    let slots = [&state.status_own, &state.status_compose, &state.status_rollup];
    let statuses: usize = slots.into_iter().flatten().map(|status| json_bytes(status)).sum();
    let inputs: usize = state.inputs.iter().map(|input| 150 + json_bytes(&input.value)).sum();
    json_bytes(&state.spec) + statuses + inputs + state.edges.len() * 200 + state.labels.len() * 60
}

/// Walks the value iteratively: a hostile nesting must not overflow the stack.
fn json_bytes(value: &Value) -> usize {
    let mut bytes = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        bytes += 16
            + match value {
                Value::String(text) => text.len(),
                Value::Array(items) => {
                    left.extend(items);
                    0
                }
                Value::Object(fields) => {
                    left.extend(fields.values());
                    fields.keys().map(|key| key.len() + 16).sum()
                }
                _ => 0,
            };
    }
    bytes
}
