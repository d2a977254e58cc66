//! Decisions, one file per command: a pure function from state and command to events.

mod claim;
mod compose;
mod declare;
mod delete;
mod evaluate;
mod names;
mod operator;
mod outcome;

use super::{Evaluate, ResourceCommand, ResourceError, ResourceEvent, ResourceState, SubtreeChanged};

impl ResourceState {
    /// Whether an evaluation on these facts would append anything, or could not be decided on this state.
    pub fn is_moved_by(&self, facts: &Evaluate) -> bool {
        !self.exists() || !matches!(evaluate::evaluate(self, facts), Ok(events) if events.is_empty())
    }
}

/// The events that `command` leads to, in order. None: nothing changes, and nothing is appended.
pub(super) fn decide(
    state: &ResourceState,
    command: ResourceCommand,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    if let ResourceCommand::Declare(declare) = command {
        return declare::declare(state, *declare);
    }
    if !state.exists() {
        return Err(ResourceError::NotFound);
    }
    match command {
        ResourceCommand::Declare(_) => Ok(vec![]),
        ResourceCommand::Redeclare(declare) => declare::declare(state, *declare),
        ResourceCommand::Evaluate(evaluate) => evaluate::evaluate(state, &evaluate),
        ResourceCommand::Claim(task) => claim::claim(state, *task),
        ResourceCommand::RecordOutcome(outcome) => Ok(outcome::record(state, *outcome)),
        ResourceCommand::ReleaseClaim { epoch, claim_id, reason, at } => {
            Ok(claim::release(state, epoch, claim_id, reason, at))
        }
        ResourceCommand::MoveClaim { epoch, claim_id, session } => {
            claim::move_to(state, epoch, claim_id, session)
        }
        ResourceCommand::CompletePass(complete) => compose::complete(state, *complete),
        ResourceCommand::AbandonPass { pass_id, reason, at } => compose::abandon(state, pass_id, reason, at),
        ResourceCommand::Drop { composer, pass_id, former_dependents, kept_until, at } => {
            compose::drop_child(state, composer, pass_id, former_dependents, kept_until, at)
        }
        ResourceCommand::ConfirmPropagated { outward } => {
            // A status that changed again since the dependents were read is still owed to them.
            let current = state.propagation_owed && state.outward == outward;
            Ok(if current { vec![ResourceEvent::Propagated {}] } else { vec![] })
        }
        ResourceCommand::RaiseSubtree { standing, culprit, at } => Ok(if state.subtree < standing {
            vec![ResourceEvent::SubtreeChanged(SubtreeChanged {
                subtree: standing,
                culprit,
                digest: None,
                at,
            })]
        } else {
            vec![]
        }),
        ResourceCommand::RequestRecompose { reason } => {
            let needed = state.shape.composes && state.deletion.is_none() && compose::covers_now(state);
            Ok(if needed { vec![ResourceEvent::RecomposeRequested { reason, digest: None }] } else { vec![] })
        }
        ResourceCommand::RemoveDropped { at } => Ok(delete::remove_dropped(state, at)),
        ResourceCommand::RequestDeletion { by_name, at } => delete::request(state, by_name, at),
        ResourceCommand::EndGrace { at } => Ok(compose::end_grace(state, at)),
        ResourceCommand::Quarantine { reason, at } => operator::quarantine(state, reason, at),
        ResourceCommand::Release { reason, at } => Ok(operator::release(state, reason, at)),
        ResourceCommand::Resync { recomposes, reason, at } => operator::resync(state, recomposes, reason, at),
        ResourceCommand::NotePrunePending { pending, at } => Ok(compose::note_pending(state, pending, at)),
        ResourceCommand::ConfirmPrune { digest, reason, at } => {
            operator::confirm_prune(state, digest, reason, at)
        }
        ResourceCommand::BindUpstreams { bound, at } => Ok(names::bind(state, bound, at)),
        ResourceCommand::TakeName { at } => Ok(names::take(state, at)),
        ResourceCommand::Abandon { reason, at } => operator::abandon(state, reason, at),
    }
}
