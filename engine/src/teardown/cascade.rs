//! Setting the marks, page by page.

use crate::evaluate::Shared;
use converge_domain::ResourceId;
use converge_domain::resource::ResourceCommand;
use converge_event_store::{ExecuteError, StoreError};
use std::sync::Arc;

const PAGE: u32 = 500;

impl Shared {
    /// Starts marking what goes with `id`. Marking twice changes nothing.
    pub(crate) fn cascade(self: &Arc<Self>, id: ResourceId) {
        let shared = self.clone();
        self.tracker().spawn(async move {
            if let Err(error) = shared.cascade_now(id).await {
                tracing::warn!(%id, %error, "a cascade stopped; it is done again");
                shared.wake_deleting(id);
            }
        });
    }

    async fn cascade_now(&self, id: ResourceId) -> Result<(), StoreError> {
        let store = &self.core().store;
        let mut after = None;
        loop {
            let children = store.children(id, after, PAGE).await?;
            let Some(last) = children.last() else { break };
            after = Some(*last);
            self.mark(&children).await?;
        }
        // Dependents of an owned node share its owner's fate or block it; a live dependent in another root was
        // refused before the delete was accepted.
        let Some(state) = self.core().resource_now(id).await? else { return Ok(()) };
        let root = state.id().root();
        let mut after = None;
        loop {
            let dependents = store.dependents(id, after, PAGE).await?;
            let Some(last) = dependents.last() else { return Ok(()) };
            after = Some(*last);
            let read = self.core().resources_now(&dependents).await?;
            let same_root: Vec<ResourceId> =
                read.into_iter().filter(|(_, state)| state.id().root() == root).map(|(id, _)| id).collect();
            self.mark(&same_root).await?;
        }
    }

    async fn mark(&self, ids: &[ResourceId]) -> Result<(), StoreError> {
        let at = self.core().now();
        let marks = ids
            .iter()
            .map(|id| self.core().execute(*id, ResourceCommand::RequestDeletion { by_name: false, at }));
        for (id, result) in ids.iter().zip(futures::future::join_all(marks).await) {
            match result {
                Ok(_) => {}
                Err(ExecuteError::Store(error)) => return Err(error),
                Err(ExecuteError::Overloaded | ExecuteError::Conflict { .. }) => {
                    return Err(StoreError::Retry("the log is busy".to_owned()));
                }
                // A protected node stays, and keeps its ancestors waiting for it; `why` names it.
                Err(error) => tracing::info!(%id, %error, "a node is not deleted with its tree"),
            }
        }
        Ok(())
    }
}
