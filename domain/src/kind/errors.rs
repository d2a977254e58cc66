//! Why a manifest is refused.

/// A refusal; nothing was stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KindError {
    /// There is no such thing.
    #[error("it does not exist")]
    NotFound,
    /// The published change would break resources of this version.
    #[error("{kind} cannot change like this: {}; publish a new version instead", .changes.join("; "))]
    Breaking { kind: String, changes: Vec<String> },
}
