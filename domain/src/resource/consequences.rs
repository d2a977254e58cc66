//! What a change of one resource means for others in the same transaction.

use super::{ResourceEvent, ResourceState, Standing};
use crate::guard::Guard;
use crate::ids::ResourceId;

/// Guards that the decision rests on, and the demotion it forces on the owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consequences {
    pub guards: Vec<Guard>,
    /// The owner's subtree must be at least this unsettled, from before this change on. The executor
    /// appends `RaiseSubtree` to the owner (events *before* the cause) when its subtree is better than that,
    /// and the guard `SubtreeAtLeast` otherwise; then goes on upward with the owner's own consequences.
    pub raise_owner: Option<(ResourceId, Standing)>,
}

/// Derives them from the states around `events`.
pub fn consequences(
    _before: &ResourceState,
    _after: &ResourceState,
    _events: &[ResourceEvent],
) -> Consequences {
    Consequences::default()
}
