//! The facts of its life.

use crate::document::ProviderConfigDocument;
use crate::ids::{ResourceId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One fact.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ProviderConfigEvent {
    /// It reads as given from now on.
    Declared {
        document: Arc<ProviderConfigDocument>,
        /// The composer that declared it; None: a user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<ResourceId>,
        at: Timestamp,
    },
    /// It is gone.
    Deleted { at: Timestamp },
}

impl cqrs_es::DomainEvent for ProviderConfigEvent {
    fn event_type(&self) -> String {
        match self {
            Self::Declared { .. } => "Declared".to_owned(),
            Self::Deleted { .. } => "Deleted".to_owned(),
        }
    }

    fn event_version(&self) -> String {
        "1".to_owned()
    }
}
