//! Removing what a composer dropped, once nobody it still wants leans on it.

use crate::evaluate::Shared;
use converge_domain::ResourceId;
use converge_domain::resource::{ResourceCommand, ResourceState};
use converge_event_store::StoreError;

impl Shared {
    /// Requests the deletion of each dropped child whose former dependents have all followed.
    pub(crate) async fn prune(&self, dropped: &[ResourceId]) -> Result<(), StoreError> {
        let children = self.core().resources_now(dropped).await?;
        let mut former = Vec::new();
        for child in children.values() {
            former.extend_from_slice(former_dependents(child));
        }
        let former = self.core().resources_now(&former).await?;
        let removable = children.values().filter(|child| {
            child.deletion.is_none()
                && child.dropped.as_ref().is_some_and(|mark| !mark.kept)
                && former_dependents(child)
                    .iter()
                    .all(|id| former.get(id).is_none_or(|dependent| has_followed(dependent, child.id().id)))
        });
        let at = self.core().now();
        let deletions =
            removable.map(|child| self.core().execute(child.id().id, ResourceCommand::RemoveDropped { at }));
        for result in futures::future::join_all(deletions).await {
            if let Err(error) = result {
                tracing::info!(%error, "a dropped child stays");
            }
        }
        Ok(())
    }
}

fn former_dependents(child: &ResourceState) -> &[ResourceId] {
    child.dropped.as_ref().map_or(&[], |mark| &mark.former_dependents)
}

/// It is synced at its generation with every current flow applied and leans on something else now, or it goes.
fn has_followed(dependent: &ResourceState, upstream: ResourceId) -> bool {
    dependent.deletion.is_some()
        || (dependent.is_synced()
            && dependent.unresolved.is_empty()
            && dependent.edges.iter().all(|edge| edge.upstream != upstream))
}
