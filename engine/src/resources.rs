//! Reading resources by id: the one way every part of the engine does it.

use crate::engine::Core;
use converge_domain::resource::ResourceState;
use converge_domain::{AggregateId, ResourceId};
use converge_event_store::StoreError;
use std::collections::HashMap;
use std::sync::Arc;

/// Live resources by id.
pub(crate) type Resources = HashMap<ResourceId, Arc<ResourceState>>;

impl Core {
    /// The live resource of that id, as of now.
    pub async fn resource(&self, id: ResourceId) -> Result<Option<Arc<ResourceState>>, StoreError> {
        let heads = self.store.heads(&[id.into()]).await?;
        Ok(heads.first().and_then(|head| head.state.as_resource()).cloned())
    }

    /// Those of `ids` that are live, in one read. An id may stand among them more than once.
    pub async fn resources(&self, ids: &[ResourceId]) -> Result<Resources, StoreError> {
        let mut unique: Vec<AggregateId> = ids.iter().map(|id| AggregateId::from(*id)).collect();
        unique.sort_unstable();
        unique.dedup();
        if unique.is_empty() {
            return Ok(Resources::new());
        }
        let heads = self.store.heads(&unique).await?;
        Ok(heads
            .into_iter()
            .filter_map(|head| Some((ResourceId(head.id.0), head.state.as_resource()?.clone())))
            .collect())
    }
}
