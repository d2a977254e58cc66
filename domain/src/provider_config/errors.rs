//! Why it is refused.

use crate::ids::ResourceId;

/// A refusal; nothing was stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProviderConfigError {
    /// There is no such thing.
    #[error("it does not exist")]
    NotFound,
    /// A composer declared it.
    #[error("it is owned by another resource ({owner}); change its owner's spec instead")]
    Owned { owner: ResourceId },
    /// A composer cannot take it over.
    #[error("a user declared it; the composer cannot take it over")]
    UserDeclared,
}
