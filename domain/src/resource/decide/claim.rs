//! Claims: taking, giving back, and moving one to another broker's session.

use crate::ids::{ClaimId, Epoch, Round, SessionId, Timestamp};
use crate::resource::{Claim, ClaimTask, Reaction, ResourceError, ResourceEvent, ResourceState};

pub(super) fn claim(state: &ResourceState, task: ClaimTask) -> Result<Vec<ResourceEvent>, ResourceError> {
    let reaction = state.due().ok_or(ResourceError::NotDue)?;
    if state.retry_at.is_some_and(|retry_at| retry_at > task.at) {
        return Err(ResourceError::NotDue);
    }
    let deadline_at = (task.deadline_secs > 0).then(|| task.at.plus_ms(i64::from(task.deadline_secs) * 1000));
    Ok(vec![ResourceEvent::Claimed(Claim {
        epoch: state.epoch.next(),
        claim_id: task.claim_id,
        reaction,
        generation: state.generation,
        round: match reaction {
            Reaction::Compose => state.compose_round,
            Reaction::Observe => Round(state.resync),
            Reaction::Work | Reaction::Rollup | Reaction::Teardown => state.round,
        },
        subtree_digest: (reaction == Reaction::Rollup)
            .then(|| state.subtree_digest.clone().unwrap_or_default()),
        // Several finalizers are stripped in reverse manifest order.
        finalizer: if reaction == Reaction::Teardown { state.finalizers.last().cloned() } else { None },
        session: task.session,
        worker: task.worker,
        claimed_at: task.at,
        deadline_at,
    })])
}

pub(super) fn release(
    state: &ResourceState,
    epoch: Epoch,
    claim_id: ClaimId,
    reason: String,
    at: Timestamp,
) -> Vec<ResourceEvent> {
    if state.holds(epoch, claim_id) {
        vec![ResourceEvent::ClaimReleased { epoch, claim_id, reason, at }]
    } else {
        vec![]
    }
}

pub(super) fn move_to(
    state: &ResourceState,
    epoch: Epoch,
    claim_id: ClaimId,
    session: SessionId,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    match &state.claim {
        Some(claim) if claim.epoch == epoch && claim.claim_id == claim_id => {
            Ok(if claim.session == session {
                vec![]
            } else {
                vec![ResourceEvent::ClaimMoved { epoch, claim_id, session }]
            })
        }
        _ => Err(ResourceError::NotDue),
    }
}

impl ResourceState {
    /// The fence: both halves of the live claim match. Epochs alone can repeat after a failover that lost the
    /// last commits; the random `claim_id` cannot.
    pub fn holds(&self, epoch: Epoch, claim_id: ClaimId) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.epoch == epoch && claim.claim_id == claim_id)
    }
}
