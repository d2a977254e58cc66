//! Kinds, as taught.

use super::Json;
use crate::error::ApiError;
use async_graphql::SimpleObject;
use converge_domain::AnyState;
use converge_event_store::Head;

/// One version of a kind.
#[derive(SimpleObject, Clone)]
pub struct Kind {
    pub kind: String,
    pub kind_version: i32,
    /// Which provider serves it.
    pub provider: String,
    /// The manifest as published.
    pub manifest: Json,
}

impl Kind {
    /// The kind in a head; None for a head of another type or without a manifest.
    ///
    /// # Errors
    /// When the manifest cannot be shown as JSON.
    pub fn from_head(head: &Head) -> Result<Option<Self>, ApiError> {
        let AnyState::Kind(state) = &head.state else { return Ok(None) };
        let Some(manifest) = &state.manifest else { return Ok(None) };
        Ok(Some(Self {
            kind: manifest.kind.clone(),
            kind_version: i32::from(manifest.kind_version),
            provider: manifest.provider().to_owned(),
            manifest: Json::of(&**manifest)?,
        }))
    }
}
