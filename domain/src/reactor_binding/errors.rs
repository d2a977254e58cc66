//! Why it is refused.

/// A refusal; nothing was stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReactorBindingError {
    /// There is no such thing.
    #[error("it does not exist")]
    NotFound,
}
