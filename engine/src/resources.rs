//! Reading resources by id: the one way every part of the engine does it.

use crate::engine::Core;
use converge_domain::resource::ResourceState;
use converge_domain::{AggregateId, ResourceId};
use converge_event_store::{Head, StoreError};
use std::collections::HashMap;
use std::sync::Arc;

/// Live resources by id.
pub(crate) type Resources = HashMap<ResourceId, Arc<ResourceState>>;

impl Core {
    /// The live resource of that id, at least as of the last event that this process was woken by.
    pub async fn resource(&self, id: ResourceId) -> Result<Option<Arc<ResourceState>>, StoreError> {
        Ok(self.resources(&[id]).await?.remove(&id))
    }

    /// Those of `ids` that are live, at least as of the last event that this process was woken by. An id may stand among
    /// them more than once.
    ///
    /// Mostly from memory (see [`Log::heads`](converge_event_store::Log::heads)): for decisions that their append checks, or
    /// that a later event brings up again.
    pub async fn resources(&self, ids: &[ResourceId]) -> Result<Resources, StoreError> {
        let ids = unique(ids);
        let heads = if ids.is_empty() { vec![] } else { self.log.heads(&ids).await? };
        Ok(live(heads))
    }

    /// The live resource of that id, as the database has it now.
    pub async fn resource_now(&self, id: ResourceId) -> Result<Option<Arc<ResourceState>>, StoreError> {
        Ok(self.resources_now(&[id]).await?.remove(&id))
    }

    /// Those of `ids` that are live, as the database has them now: for answers that nothing checks afterwards.
    pub async fn resources_now(&self, ids: &[ResourceId]) -> Result<Resources, StoreError> {
        let ids = unique(ids);
        let heads = if ids.is_empty() { vec![] } else { self.store.heads(&ids).await? };
        Ok(live(heads))
    }
}

fn unique(ids: &[ResourceId]) -> Vec<AggregateId> {
    let mut unique: Vec<AggregateId> = ids.iter().map(|id| AggregateId::from(*id)).collect();
    unique.sort_unstable();
    unique.dedup();
    unique
}

fn live(heads: Vec<Head>) -> Resources {
    let resources =
        heads.into_iter().filter_map(|head| Some((ResourceId(head.id.0), head.state.as_resource()?.clone())));
    resources.collect()
}
