//! What a worker said, taken only under the live fence.

use super::delete;
use crate::backoff;
use crate::resource::{
    AttemptFailed, Claim, CompositionAccepted, Condition, ConditionStatus, Observed, Outcome, Pass, Reaction,
    RecordOutcome, ResourceEvent, ResourceState, Succeeded, Worked,
};

/// Longest failure message kept, in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

pub(super) fn record(state: &ResourceState, record: RecordOutcome) -> Vec<ResourceEvent> {
    let RecordOutcome { epoch, claim_id, at, .. } = record;
    let Some(claim) = state.claim.as_ref().filter(|_| state.holds(epoch, claim_id)) else {
        let reason = match &state.claim {
            Some(live) => format!("the live claim has epoch {}", live.epoch),
            None => "no claim is live".to_owned(),
        };
        return vec![ResourceEvent::OutcomeFenced { epoch, claim_id, reason }];
    };
    match record.outcome {
        Outcome::Succeeded(succeeded) => success(state, claim, succeeded, &record.retry, at),
        Outcome::Composition { pass_id, digest, children, edges, succeeded } => {
            // A deletion that came meanwhile wins: no child is made under a resource that is going away.
            if state.deletion.is_some() {
                let reason = "deletion was requested while it composed".to_owned();
                return vec![ResourceEvent::ClaimReleased { epoch, claim_id, reason, at }];
            }
            vec![ResourceEvent::CompositionAccepted(CompositionAccepted {
                epoch,
                pass: Pass {
                    pass_id,
                    claim_id,
                    generation: claim.generation,
                    compose_round: claim.round,
                    digest,
                    children,
                    edges,
                },
                status: succeeded.status,
                conditions: succeeded.conditions,
                at,
            })]
        }
        Outcome::InProgress { status, requeue_after_secs } => {
            // A newer generation does not wait for what an older one asked for.
            let live = claim.generation == state.generation;
            let requeue_at = if live { at.plus_ms(i64::from(requeue_after_secs) * 1000) } else { at };
            vec![ResourceEvent::Progressed { epoch, status, requeue_at, at }]
        }
        Outcome::Failed { message, terminal, status } => {
            vec![failure(state, claim, message, terminal, status, &record.retry, at)]
        }
    }
}

fn success(
    state: &ResourceState,
    claim: &Claim,
    succeeded: Succeeded,
    retry: &crate::resource::RetryPolicy,
    at: crate::ids::Timestamp,
) -> Vec<ResourceEvent> {
    match claim.reaction {
        Reaction::Work => {
            let healthy = succeeded.healthy.unwrap_or(true) && !says_unready(succeeded.conditions.as_deref());
            vec![ResourceEvent::Worked(Worked {
                epoch: claim.epoch,
                generation: claim.generation,
                round: claim.round,
                status: succeeded.status,
                conditions: succeeded.conditions,
                healthy,
                changed: succeeded.changed,
                at,
            })]
        }
        Reaction::Compose => {
            let message = "the composer answered without a composition".to_owned();
            vec![failure(state, claim, message, true, None, retry, at)]
        }
        Reaction::Observe => {
            let healthy = succeeded.healthy.unwrap_or(true) && !says_unready(succeeded.conditions.as_deref());
            // Small where nothing changed, as it mostly is.
            let status = succeeded.status.filter(|seen| {
                state.status_own.as_ref().is_none_or(|known| !crate::json::equal(known, seen))
            });
            let conditions = succeeded.conditions.filter(|seen| *seen != state.conditions_own);
            vec![ResourceEvent::Observed(Observed {
                epoch: claim.epoch,
                number: claim.round.0,
                status,
                conditions,
                healthy,
                changed: succeeded.changed,
                at,
            })]
        }
        Reaction::Rollup => vec![ResourceEvent::RolledUp {
            epoch: claim.epoch,
            digest: claim.subtree_digest.clone().unwrap_or_default(),
            status: succeeded.status,
            conditions: succeeded.conditions,
            at,
        }],
        Reaction::Teardown => {
            let finalizer = claim.finalizer.clone().unwrap_or_default();
            let last = state.finalizers.iter().all(|held| *held == finalizer);
            let mut events = vec![ResourceEvent::FinalizerStripped { epoch: claim.epoch, finalizer, at }];
            if last {
                events.push(delete::gone(state, at));
            }
            events
        }
    }
}

fn failure(
    state: &ResourceState,
    claim: &Claim,
    message: String,
    terminal: bool,
    status: Option<std::sync::Arc<serde_json::Value>>,
    retry: &crate::resource::RetryPolicy,
    at: crate::ids::Timestamp,
) -> ResourceEvent {
    let attempt = state.attempts + 1;
    let dead_letter = retry.max_transient_attempts > 0 && attempt >= retry.max_transient_attempts;
    // A teardown never gives up: something may still exist out there.
    let terminal = (terminal || dead_letter) && claim.reaction != Reaction::Teardown;
    let mut message = truncated(message);
    if terminal && dead_letter {
        message = format!("{message} (gave up after {attempt} attempts)");
    }
    ResourceEvent::AttemptFailed(AttemptFailed {
        epoch: claim.epoch,
        reaction: claim.reaction,
        generation: claim.generation,
        message,
        terminal,
        attempt,
        retry_at: (!terminal).then(|| at.plus_ms(backoff::delay_ms(attempt, retry.jitter))),
        status,
        at,
    })
}

fn says_unready(conditions: Option<&[Condition]>) -> bool {
    conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| condition.condition_type == "Ready" && condition.status == ConditionStatus::False)
}

fn truncated(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let cut = (0..=MESSAGE_BYTES_MAX).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(cut);
        message.push('…');
    }
    message
}
