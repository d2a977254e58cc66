//! Asking for the end.

use crate::ids::Timestamp;
use crate::resource::{Deleted, ResourceError, ResourceEvent, ResourceState};

pub(super) fn request(
    state: &ResourceState,
    by_name: bool,
    at: Timestamp,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    if state.deletion.is_some() {
        return Ok(vec![]);
    }
    if state.deletion_protection {
        return Err(ResourceError::Protected);
    }
    if state.quarantine.is_some() && !by_name {
        return Err(ResourceError::Quarantined);
    }
    Ok(vec![ResourceEvent::DeletionRequested { at }])
}

/// The last event of a stream.
pub(super) fn gone(state: &ResourceState, at: Timestamp) -> ResourceEvent {
    let owner = state.id().owner();
    ResourceEvent::Deleted(Deleted {
        owner,
        upstreams: state.edges.iter().map(|edge| edge.upstream).collect(),
        reference: Some(state.id().reference()),
        wanted: owner.is_some() && state.dropped.is_none(),
        at,
    })
}

/// Removes a child that its composer dropped; one that was adopted again meanwhile stays.
pub(super) fn remove_dropped(state: &ResourceState, at: Timestamp) -> Vec<ResourceEvent> {
    let removable = state.dropped.as_ref().is_some_and(|mark| !mark.kept) && state.quarantine.is_none();
    if removable && state.deletion.is_none() && !state.deletion_protection {
        vec![ResourceEvent::DeletionRequested { at }]
    } else {
        vec![]
    }
}
