//! The two ends of a composition pass, and the drop mark on a child.

use crate::ids::{PassId, ResourceId, Timestamp};
use crate::resource::{
    CompletePass, Composed, PendingPrune, Reaction, ResourceError, ResourceEvent, ResourceState,
};

pub(super) fn complete(
    state: &ResourceState,
    complete: CompletePass,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    let CompletePass { pass_id, created, changed, dropped, conflicts, held, sample, configs, at } = complete;
    in_pass(state, pass_id)?;
    Ok(vec![ResourceEvent::Composed(Composed {
        pass_id,
        created,
        changed,
        dropped,
        conflicts,
        held,
        sample,
        configs,
        at,
    })])
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
    kept_until: Option<Timestamp>,
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    match state.id().owner() {
        Some(owner) if owner != composer => return Err(ResourceError::Owned { owner }),
        None => return Err(ResourceError::UserDeclared),
        _ => {}
    }
    // A quarantined child is never swept: its composer looks at it again when it is released.
    if state.deletion.is_some() || state.dropped.is_some() || state.quarantine.is_some() {
        return Ok(vec![]);
    }
    let kept = kept_until.is_some();
    Ok(vec![ResourceEvent::Dropped { pass_id, former_dependents, kept, kept_until, at }])
}

/// Time alone moves no phase: the end of a grace window is a fact.
pub(super) fn end_grace(state: &ResourceState, at: Timestamp) -> Vec<ResourceEvent> {
    let over = state.dropped.as_ref().and_then(|mark| mark.kept_until).is_some_and(|until| until <= at);
    if over && state.deletion.is_none() && state.quarantine.is_none() {
        vec![ResourceEvent::GraceEnded { at }]
    } else {
        vec![]
    }
}

pub(super) fn note_pending(
    state: &ResourceState,
    pending: Vec<PendingPrune>,
    at: Timestamp,
) -> Vec<ResourceEvent> {
    if state.deletion.is_some() || state.prune_pending == pending {
        return vec![];
    }
    vec![ResourceEvent::PrunePendingChanged { pending, at }]
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
