//! Provider configs, without their bytes.

use super::Json;
use async_graphql::SimpleObject;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use converge_domain::AnyState;
use converge_event_store::Head;

/// Tunes the provider of a kind.
#[derive(SimpleObject, Clone)]
pub struct ProviderConfig {
    pub name: String,
    pub kind: String,
    pub kind_version: i32,
    pub is_default: bool,
    pub spec: Json,
    /// Length of the opaque bundle.
    pub data_bytes: i32,
}

impl ProviderConfig {
    /// The config in a head; None for a head of another type or a deleted config.
    pub fn from_head(head: &Head) -> Option<Self> {
        let AnyState::ProviderConfig(state) = &head.state else { return None };
        let document = state.document.as_ref()?;
        let bytes = document.data.as_deref().map_or(0, |data| {
            // Checked to be base64 when it was declared.
            STANDARD.decode(data).map_or(data.len(), |bytes| bytes.len())
        });
        Some(Self {
            name: document.name.clone(),
            kind: document.kind.clone(),
            kind_version: i32::from(document.kind_version),
            is_default: document.is_default,
            spec: Json(document.spec.clone()),
            data_bytes: i32::try_from(bytes).unwrap_or(i32::MAX),
        })
    }
}
