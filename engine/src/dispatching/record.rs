//! Outcomes: checked against the mask and the limits, then recorded under their fence.

use super::Dispatcher;
use crate::compose::{Acceptance, accept};
use crate::dispatch::{DispatchError, Recorded, TaskOutcome, TaskResult};
use bytes::Bytes;
use converge_domain::json;
use converge_domain::kind::{Emit, Manifest};
use converge_domain::resource::{
    Outcome, Reaction, RecordOutcome, ResourceCommand, ResourceError, ResourceEvent, ResourceState,
    RetryPolicy, Succeeded,
};
use converge_domain::{AnyEvent, DomainError, PassId};
use converge_event_store::ExecuteError;
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

/// Largest status of one outcome, in bytes.
const STATUS_BYTES_MAX: usize = 1024 * 1024;
/// Attempts before a transient failure becomes terminal, where the kind says nothing.
const MAX_TRANSIENT_ATTEMPTS: u32 = 20;
/// Seconds after which an `in_progress` outcome is asked again, where the worker says nothing.
const REQUEUE_SECS: u32 = 10;

impl Dispatcher {
    pub(super) async fn record_outcome(&self, outcome: TaskOutcome) -> Result<Recorded, DispatchError> {
        let id = outcome.fence.id;
        let fence = outcome.fence;
        let mut state = self.core.resource(id).await?;
        if !state.as_ref().is_some_and(|state| state.holds(fence.epoch, fence.claim_id)) {
            // A claim of another broker may be newer than what this process knows: only the database can call a fence dead.
            state = self.core.resource_now(id).await?;
        }
        let Some(state) = state else { return Ok(Recorded::Fenced) };
        let entry = self.core.registry.kind(&outcome.kind);
        let manifest = entry.as_ref().map(|entry| entry.manifest.as_ref());
        let reaction = state
            .claim
            .as_ref()
            .filter(|_| state.holds(fence.epoch, fence.claim_id))
            .map(|claim| (claim.reaction, claim.finalizer.clone()));
        let outcome = match reaction.clone() {
            Some((reaction, finalizer)) => {
                self.judged(&state, manifest, reaction, finalizer.as_deref(), outcome).await?
            }
            // The fence is dead: whatever it says changes nothing, but that it came is recorded.
            None => failed("fenced", false),
        };
        let retry = RetryPolicy {
            max_transient_attempts: manifest
                .and_then(|manifest| manifest.knobs.max_transient_attempts)
                .unwrap_or(MAX_TRANSIENT_ATTEMPTS),
            jitter: rand::random(),
        };
        let command = ResourceCommand::RecordOutcome(Box::new(RecordOutcome {
            epoch: fence.epoch,
            claim_id: fence.claim_id,
            outcome,
            retry,
            at: self.core.now(),
        }));
        match self.core.execute(id, command).await {
            Ok(committed) => {
                let fenced = committed.steps.iter().flat_map(|step| &step.events).any(|stored| {
                    matches!(stored.event, AnyEvent::Resource(ResourceEvent::OutcomeFenced { .. }))
                });
                let composes = reaction.as_ref().is_some_and(|(reaction, _)| *reaction == Reaction::Compose);
                let accepted = committed.steps.iter().flat_map(|step| &step.events).any(|stored| {
                    matches!(stored.event, AnyEvent::Resource(ResourceEvent::CompositionAccepted(_)))
                });
                if composes && !accepted {
                    self.unstage(fence).await;
                }
                if fenced {
                    metrics::counter!("converge_outcomes_fenced_total").increment(1);
                    self.unstage(fence).await;
                }
                Ok(if fenced { Recorded::Fenced } else { Recorded::Accepted })
            }
            Err(ExecuteError::Domain { error: DomainError::Resource(ResourceError::NotFound), .. }) => {
                Ok(Recorded::Fenced)
            }
            Err(error) => Err(DispatchError(error.to_string())),
        }
    }

    /// Forgets what a claim staged. Where that fails the rows stay behind, unread, until their composer is gone.
    pub(super) async fn unstage(&self, fence: crate::dispatch::Fence) {
        if let Err(error) = self.core.store.unstage(fence.id, fence.claim_id).await {
            tracing::warn!(id = %fence.id, %error, "staged output stays behind");
        }
    }

    async fn judged(
        &self,
        state: &ResourceState,
        manifest: Option<&Manifest>,
        reaction: Reaction,
        finalizer: Option<&str>,
        outcome: TaskOutcome,
    ) -> Result<Outcome, DispatchError> {
        let emits = manifest
            .and_then(|manifest| manifest.reaction(reaction, finalizer))
            .map(|reaction| reaction.emits.clone())
            .unwrap_or_default();
        let claim_id = outcome.fence.claim_id;
        let (status, conditions, healthy, changed, counts) = match outcome.result {
            TaskResult::Failure { message, terminal, status } => {
                let status = parsed_status(status.as_ref().filter(|_| emits.contains(&Emit::Status)));
                return Ok(Outcome::Failed { message, terminal, status: status.unwrap_or(None) });
            }
            TaskResult::Success { status, in_progress: true, requeue_after_secs, .. } => {
                let requeue_after_secs = requeue_after_secs.unwrap_or(REQUEUE_SECS);
                return Ok(match parsed_status(status.as_ref().filter(|_| emits.contains(&Emit::Status))) {
                    Ok(status) => Outcome::InProgress { status, requeue_after_secs },
                    Err(message) => failed(&message, true),
                });
            }
            TaskResult::Success {
                status, conditions, healthy, changed, children, edges, configs, ..
            } => (status, conditions, healthy, changed, [children, edges, configs]),
        };
        let succeeded = Succeeded {
            status: match parsed_status(status.as_ref().filter(|_| emits.contains(&Emit::Status))) {
                Ok(status) => status,
                Err(message) => return Ok(failed(&message, true)),
            },
            healthy: healthy.or_else(|| {
                // Health speaks even where the mask drops the condition that carries it.
                let unready = conditions.iter().flatten().any(|condition| {
                    condition.condition_type == "Ready"
                        && condition.status == converge_domain::resource::ConditionStatus::False
                });
                unready.then_some(false)
            }),
            conditions: conditions.filter(|_| emits.contains(&Emit::Conditions)),
            changed,
        };
        if reaction != Reaction::Compose {
            return Ok(Outcome::Succeeded(succeeded));
        }
        let acceptance = accept(&self.core, state, claim_id, counts).await?;
        Ok(match acceptance {
            Acceptance::Accepted { digest, children, edges } => {
                Outcome::Composition { pass_id: PassId(Uuid::new_v4()), digest, children, edges, succeeded }
            }
            Acceptance::Incomplete(message) => failed(&message, false),
            Acceptance::Refused(message) => failed(&message, true),
        })
    }
}

fn failed(message: &str, terminal: bool) -> Outcome {
    Outcome::Failed { message: message.to_owned(), terminal, status: None }
}

/// A status must be a JSON object of bounded size.
fn parsed_status(status: Option<&Bytes>) -> Result<Option<Arc<Value>>, String> {
    let Some(bytes) = status else { return Ok(None) };
    if bytes.len() > STATUS_BYTES_MAX {
        return Err(format!("the status has {} bytes; at most {STATUS_BYTES_MAX} are taken", bytes.len()));
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value @ Value::Object(_)) if json::depth(&value) > json::DEPTH_MAX => {
            Err(format!("the status nests deeper than {} levels", json::DEPTH_MAX))
        }
        Ok(value @ Value::Object(_)) => Ok(Some(Arc::new(value))),
        Ok(_) => Err("the status is not a JSON object".to_owned()),
        Err(error) => Err(format!("the status is not JSON: {error}")),
    }
}
