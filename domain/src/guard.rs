//! Guards: the facts about *other* aggregates that a decision rested on.
//!
//! A decision sees its own aggregate under compare-and-set; everything else it relied on is written down
//! as a guard from this closed list. The store checks guards after all heads are locked, in a new
//! statement, so each guard sees every transaction that committed before the locks were granted. A guard
//! that no longer holds is a conflict of that command alone, and domain code decides again.

use crate::ids::{AggregateId, KindRef, PassId, ResourceId, Sequence};
use crate::resource::Standing;
use serde::{Deserialize, Serialize};

/// One fact that must still hold when the decision commits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Guard {
    /// The head of `id` is still at `sequence` (0: does not exist). Share-locks it.
    Unmoved { id: AggregateId, sequence: Sequence },
    /// The resource exists and its phase is Ready. Share-locks it.
    UpstreamReady { id: ResourceId },
    /// The resource exists, is not Deleting and has no unfinished pass. Share-locks it.
    AncestorQuiet { id: ResourceId },
    /// The composer `id` is in pass `pass_id` and not Deleting. Share-locks it.
    InPass { id: ResourceId, pass_id: PassId },
    /// The ancestor's stored subtree state is at least as unsettled as `standing`
    /// (`Open` > `Impaired` > `AllReady`). Share-locks it.
    SubtreeAtLeast { id: ResourceId, standing: Standing },
    /// `id` has no child row with standing Open.
    NoOpenChild { id: ResourceId },
    /// `id` has no child row with standing Open or Impaired.
    NoUnreadyChild { id: ResourceId },
    /// No live resource has an edge to `id`.
    NoDependents { id: ResourceId },
    /// `id` owns no live resource.
    NoChildren { id: ResourceId },
    /// One more claim of this kind version stays within its `max_inflight`. Locks the kind's policy row.
    UnderCap { kind: KindRef },
}
