//! The two ends of a composition pass, and the drop mark on a child.

use crate::ids::{PassId, ResourceId, Timestamp};
use crate::resource::{Reaction, ResourceError, ResourceEvent, ResourceState};

pub(super) fn complete(
    state: &ResourceState,
    pass_id: PassId,
    [created, changed, dropped]: [u64; 3],
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    in_pass(state, pass_id)?;
    Ok(vec![ResourceEvent::Composed { pass_id, created, changed, dropped, at }])
}

pub(super) fn abandon(
    state: &ResourceState,
    pass_id: PassId,
    reason: String,
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    in_pass(state, pass_id)?;
    Ok(vec![ResourceEvent::CompositionAbandoned { pass_id, reason, at }])
}

pub(super) fn drop_child(
    state: &ResourceState,
    composer: ResourceId,
    pass_id: PassId,
    former_dependents: Vec<ResourceId>,
    kept: bool,
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    match state.id().owner() {
        Some(owner) if owner != composer => return Err(ResourceError::Owned { owner }),
        None => return Err(ResourceError::UserDeclared),
        _ => {}
    }
    if state.deletion.is_some() || state.dropped.is_some() {
        return Ok(vec![]);
    }
    Ok(vec![ResourceEvent::Dropped { pass_id, former_dependents, kept, at }])
}

fn in_pass(state: &ResourceState, pass_id: PassId) -> Result<(), ResourceError> {
    match &state.pass {
        Some(pass) if pass.pass_id == pass_id => Ok(()),
        _ => Err(ResourceError::NotInPass),
    }
}

/// Whether the live compose round is done or being done: then a new reason to compose needs a new round. While
/// the round is still to come, that one will see the reason too.
pub(super) fn covers_now(state: &ResourceState) -> bool {
    let live = (state.generation, state.compose_round);
    state.composed == Some(live)
        || state.pass.as_ref().is_some_and(|pass| (pass.generation, pass.compose_round) == live)
        || state.claim.as_ref().is_some_and(|claim| {
            claim.reaction == Reaction::Compose && (claim.generation, claim.round) == live
        })
}
