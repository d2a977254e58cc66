//! What an operator does by hand. Doing it twice changes nothing.

use super::delete;
use crate::ids::Timestamp;
use crate::resource::{ResourceError, ResourceEvent, ResourceState, ResyncRequested};

pub(super) fn quarantine(
    state: &ResourceState,
    reason: String,
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    if state.deletion.is_some() {
        return Err(ResourceError::Deleting);
    }
    Ok(if state.quarantine.is_some() { vec![] } else { vec![ResourceEvent::Quarantined { reason, at }] })
}

pub(super) fn release(state: &ResourceState, reason: String, at: Timestamp) -> Vec<ResourceEvent> {
    if state.quarantine.is_some() && state.deletion.is_none() {
        vec![ResourceEvent::Released { reason, at }]
    } else {
        vec![]
    }
}

/// An observation, or, of a Failed resource, both rounds. One that was asked for and not answered yet answers this one too.
pub(super) fn resync(
    state: &ResourceState,
    recomposes: bool,
    reason: String,
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    if state.deletion.is_some() {
        return Err(ResourceError::Deleting);
    }
    let retry = state.has_failed() || state.rollup_failed;
    let recompose = recomposes && state.shape.composes && !retry;
    let looks = state.shape.works || state.shape.observes;
    if !(retry || recompose || looks) {
        return Err(ResourceError::NothingToResync(
            "its kind has no reaction that looks at the world, and does not compose on a resync",
        ));
    }
    // Work that is due looks at the world anyway.
    let pending = state.resynced < state.resync && state.retry_at.is_none();
    let composes_anyway = !recompose || state.composition_is_behind();
    if pending && composes_anyway && !retry {
        return Ok(vec![]);
    }
    Ok(vec![ResourceEvent::ResyncRequested(ResyncRequested {
        number: state.resync + 1,
        retry,
        recompose: recompose && !state.composition_is_behind(),
        reason,
        at,
    })])
}

pub(super) fn confirm_prune(
    state: &ResourceState,
    digest: String,
    reason: String,
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    if state.prune_confirmed.as_ref() == Some(&digest) {
        return Ok(vec![]);
    }
    let held = state.prune_held.as_ref().map(|held| held.digest.clone());
    if state.deletion.is_some() {
        return Err(ResourceError::Deleting);
    }
    if held.as_ref() != Some(&digest) {
        return Err(ResourceError::NoSuchPrune { digest, held });
    }
    Ok(vec![ResourceEvent::PruneConfirmed { digest, reason, at }])
}

/// Gives a teardown up that cannot end. Only the node that does not end: whatever waits for it goes on by itself then, and
/// whatever it waits for has to go first, or it would lose the upstream or owner that it still needs.
pub(super) fn abandon(
    state: &ResourceState,
    reason: String,
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    let Some(deletion) = &state.deletion else { return Err(ResourceError::NotDeleting) };
    // A task that was cancelled and never answered holds the teardown back before it opens.
    if !deletion.open && state.claim.is_none() {
        return Err(ResourceError::TeardownNotOpen);
    }
    let finalizers = state.finalizers.clone();
    Ok(vec![ResourceEvent::Abandoned { reason, finalizers, at }, delete::gone(state, at)])
}
