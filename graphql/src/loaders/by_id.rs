//! Resources by id, from their heads.

use crate::error::ApiError;
use crate::types::Resource;
use async_graphql::dataloader::Loader;
use converge_domain::{AggregateId, Position, ResourceId};
use converge_event_store::Store;
use std::collections::HashMap;
use std::sync::Arc;

/// Loads heads; each comes with a position that it certainly includes.
pub struct ById {
    pub(super) store: Arc<dyn Store>,
}

impl Loader<ResourceId> for ById {
    type Value = (Position, Resource);
    type Error = ApiError;

    async fn load(&self, keys: &[ResourceId]) -> Result<HashMap<ResourceId, Self::Value>, ApiError> {
        tracing::trace!(keys = keys.len(), "loading resources");
        // The end of the log first: heads read after it include at least that much.
        let position = self.store.log_head().await?.position;
        let ids: Vec<AggregateId> = keys.iter().map(|id| AggregateId::from(*id)).collect();
        let heads = self.store.heads(&ids).await?;
        Ok(heads
            .into_iter()
            .filter_map(|head| {
                let state = head.state.as_resource().filter(|state| state.exists())?;
                Some((ResourceId(head.id.0), (position, Resource::new(Arc::clone(state)))))
            })
            .collect())
    }
}
