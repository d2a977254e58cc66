//! Why a command to a resource is refused. Nothing is stored then.

use crate::ids::{ResourceId, Revision, Sequence};

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResourceError {
    #[error("it does not exist")]
    NotFound,
    #[error("it is being deleted; apply it again when it is gone")]
    Deleting,
    #[error("it is owned by another resource ({owner}); change its owner's spec instead")]
    Owned { owner: ResourceId },
    #[error("a user declared it; the composer cannot take it over")]
    UserDeclared,
    #[error("expected revision {expected}, but it is at revision {actual}")]
    RevisionMismatch { expected: Revision, actual: Revision },
    #[error("deletion protection is on; apply it with `deletion_protection: false` first")]
    Protected,
    /// An evaluation's facts are older than the resource.
    #[error("it moved from sequence {expected} to {actual}; evaluate again")]
    Moved { expected: Sequence, actual: Sequence },
    /// There is nothing to claim now.
    #[error("nothing is due")]
    NotDue,
    #[error("it is in quarantine; release it, or delete it by name")]
    Quarantined,
    #[error("it is not being deleted; there is no teardown to give up")]
    NotDeleting,
    #[error(
        "its teardown waits for what depends on it and for what it owns; give up the node that does not end"
    )]
    TeardownNotOpen,
    #[error("no prune with digest {digest} is held{}", .held.as_ref().map(|held| format!("; the one that is has digest {held}")).unwrap_or_default())]
    NoSuchPrune { digest: String, held: Option<String> },
    #[error("{0}")]
    NothingToResync(&'static str),
    /// The pass named is not the one under way.
    #[error("the composition pass is over")]
    NotInPass,
}
