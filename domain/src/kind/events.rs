//! The facts of a kind version's life.

use super::Manifest;
use crate::ids::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One fact.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum KindEvent {
    /// The manifest as of now.
    Published { manifest: Arc<Manifest>, at: Timestamp },
    /// Nobody can be of this version any more, until it is published again.
    Deleted { at: Timestamp },
}

impl cqrs_es::DomainEvent for KindEvent {
    fn event_type(&self) -> String {
        match self {
            Self::Published { .. } => "Published".to_owned(),
            Self::Deleted { .. } => "Deleted".to_owned(),
        }
    }

    fn event_version(&self) -> String {
        "1".to_owned()
    }
}
