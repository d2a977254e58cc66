//! A condition as handlers report it.

use serde::{Deserialize, Serialize};

/// Kubernetes' convention; the engine adds when it changed and for which generation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// CamelCase, such as `Ready` or `QuotaAvailable`.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One CamelCase word.
    #[serde(default)]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
}

impl Condition {
    /// A condition that holds.
    pub fn holds(condition_type: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            condition_type: condition_type.into(),
            status: "True".to_owned(),
            reason: reason.into(),
            message: String::new(),
        }
    }

    /// A condition that does not hold, and why.
    pub fn fails(
        condition_type: impl Into<String>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            condition_type: condition_type.into(),
            status: "False".to_owned(),
            reason: reason.into(),
            message: message.into(),
        }
    }
}
