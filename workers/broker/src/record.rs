//! Hands outcomes to the engine and answers for them.

use crate::backoff::retry;
use crate::shared::Shared;
use converge_engine::dispatch::{Recorded, TaskOutcome, TaskResult};
use std::sync::Arc;
use tokio::time::Instant;

/// Records one outcome whose entry is in `Recording`. The worker keeps its copy until it hears `Received`, which
/// is sent only after the store has the outcome: a broker that dies between the two is told again, and the
/// second telling meets a dead fence and changes nothing.
pub(crate) async fn record(shared: &Arc<Shared>, outcome: TaskOutcome) {
    let fence = outcome.fence;
    let word = match &outcome.result {
        TaskResult::Success { in_progress: true, .. } => "in_progress",
        TaskResult::Success { .. } => "success",
        TaskResult::Failure { terminal: true, .. } => "terminal",
        TaskResult::Failure { .. } => "transient",
    };
    match retry(&shared.config, "record", || shared.dispatch.record(outcome.clone())).await {
        Ok(recorded) => {
            let accepted = recorded == Recorded::Accepted;
            let result = if accepted { word } else { "fenced" };
            metrics::counter!("converge_outcomes_total", "result" => result).increment(1);
            shared.change(|state| state.recorded(fence, accepted));
        }
        Err(error) => {
            tracing::error!(?fence, %error, "an outcome was not recorded; its worker keeps it");
            shared.change(|state| state.not_recorded(fence, Instant::now()));
        }
    }
}
