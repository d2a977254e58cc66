//! Guards about aggregates that the same batch has moved.
//!
//! The append checks guards against what is stored before the batch. For a decision made behind an earlier
//! group's change of the guarded head, that is the wrong state: the right one is in memory.

use super::draft::Slot;
use converge_domain::AggregateId;
use converge_domain::guard::Guard;
use converge_domain::resource::{Phase, ResourceState};

/// What a guard looks at.
pub(super) enum Subject {
    /// One head.
    Head(AggregateId),
    /// Rows that many aggregates write: children of the id.
    ChildrenOf(converge_domain::ResourceId),
    /// Rows that many aggregates write: edges to the id.
    DependentsOf(converge_domain::ResourceId),
    /// Claims of a kind; only the append can count them.
    Kind,
}

pub(super) fn subject(guard: &Guard) -> Subject {
    match guard {
        Guard::Unmoved { id, .. } => Subject::Head(*id),
        Guard::UpstreamReady { id }
        | Guard::AncestorQuiet { id }
        | Guard::InPass { id, .. }
        | Guard::SubtreeAtLeast { id, .. } => Subject::Head((*id).into()),
        Guard::NoOpenChild { id } | Guard::NoUnreadyChild { id } | Guard::NoChildren { id } => {
            Subject::ChildrenOf(*id)
        }
        Guard::NoDependents { id } => Subject::DependentsOf(*id),
        Guard::UnderCap { .. } => Subject::Kind,
    }
}

/// Whether a guard about a head holds for its state in this batch.
pub(super) fn holds(guard: &Guard, slot: &Slot) -> bool {
    let resource = slot.state.as_resource().filter(|state| state.exists());
    let alive = |state: &ResourceState| state.phase() != Phase::Deleting;
    match guard {
        Guard::Unmoved { sequence, .. } => slot.sequence == *sequence,
        Guard::UpstreamReady { .. } => resource.is_some_and(|state| state.phase() == Phase::Ready),
        Guard::AncestorQuiet { .. } => resource.is_some_and(|state| alive(state) && state.pass.is_none()),
        Guard::InPass { pass_id, .. } => resource.is_some_and(|state| {
            alive(state) && state.pass.as_ref().is_some_and(|pass| pass.pass_id == *pass_id)
        }),
        Guard::SubtreeAtLeast { standing, .. } => resource.is_some_and(|state| state.subtree >= *standing),
        _ => false,
    }
}
