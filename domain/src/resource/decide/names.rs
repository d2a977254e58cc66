//! Waiting for names: an upstream that is not there yet, and a name whose bearer is going away.

use crate::ids::{ResourceId, ResourceRef, Timestamp};
use crate::resource::{ResourceEvent, ResourceState};

/// Edges to names that somebody bears now.
pub(super) fn bind(
    state: &ResourceState,
    mut bound: Vec<(ResourceRef, ResourceId)>,
    at: Timestamp,
) -> Vec<ResourceEvent> {
    bound.retain(|(name, _)| state.edges.iter().any(|edge| edge.unbound && edge.upstream_ref == *name));
    if bound.is_empty() || state.deletion.is_some() {
        vec![]
    } else {
        vec![ResourceEvent::UpstreamsBound { bound, at }]
    }
}

/// The name itself is taken by the append that carries the event; if somebody else was faster, that refuses it.
pub(super) fn take(state: &ResourceState, at: Timestamp) -> Vec<ResourceEvent> {
    let waits = state.behind.is_some() && state.deletion.is_none();
    if waits { vec![ResourceEvent::NameTaken { at }] } else { vec![] }
}
