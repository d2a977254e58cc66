//! Conditions, in Kubernetes' convention.

use super::{DateTime, Position};
use async_graphql::SimpleObject;
use converge_domain::resource::ConditionStatus;

/// One aspect of a resource's status.
#[derive(SimpleObject, Clone, Debug)]
pub struct Condition {
    #[graphql(name = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition: DateTime,
    pub observed_generation: Position,
}

impl From<converge_domain::resource::Condition> for Condition {
    fn from(condition: converge_domain::resource::Condition) -> Self {
        let status = match condition.status {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        };
        Self {
            condition_type: condition.condition_type,
            status: status.to_owned(),
            reason: condition.reason,
            message: condition.message,
            last_transition: DateTime(condition.last_transition),
            observed_generation: Position(condition.observed_generation.0),
        }
    }
}
