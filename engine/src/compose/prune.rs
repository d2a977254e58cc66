//! Removing what a composer dropped, once nobody it still wants leans on it.

use crate::evaluate::Shared;
use crate::resources::Resources;
use converge_domain::ResourceId;
use converge_domain::resource::{PendingPrune, ResourceCommand, ResourceState};
use converge_event_store::StoreError;

/// Children that the condition names at most.
const PENDING_MAX: usize = 20;

impl Shared {
    /// Requests the deletion of each dropped child whose former dependents have all followed, and notes at the composer which
    /// ones stay for a reason that will not go by itself.
    pub(crate) async fn prune(
        &self,
        composer: &ResourceState,
        dropped: &[ResourceId],
    ) -> Result<(), StoreError> {
        let children = self.core().resources_now(dropped).await?;
        let mut former = Vec::new();
        for child in children.values() {
            former.extend_from_slice(former_dependents(child));
        }
        let former = self.core().resources_now(&former).await?;
        let mut pending: Vec<PendingPrune> =
            children.values().filter_map(|child| stays(child, &former)).collect();
        // In an order of their own, so that looking twice finds the same.
        pending.sort_unstable_by(|a, b| a.child.cmp(&b.child));
        pending.truncate(PENDING_MAX);
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
        if pending != composer.prune_pending {
            let note = ResourceCommand::NotePrunePending { pending, at };
            if let Err(error) = self.core().execute(composer.id().id, note).await {
                // Nothing rests on it, and the next look finds the difference again.
                tracing::info!(%error, "what stays is not noted");
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
            && dependent.quarantine.is_none()
            && dependent.unresolved.is_empty()
            && dependent.edges.iter().all(|edge| edge.upstream != upstream))
}

/// Why a dropped child stays for longer than the others need to follow, if it does.
fn stays(child: &ResourceState, former: &Resources) -> Option<PendingPrune> {
    if child.deletion.is_some() {
        return None;
    }
    let reference = || child.id().reference();
    if child.deletion_protection {
        return Some(PendingPrune { child: reference(), dependent: None });
    }
    let stuck = former_dependents(child).iter().filter_map(|id| former.get(id)).find(|dependent| {
        !has_followed(dependent, child.id().id) && (dependent.has_failed() || dependent.quarantine.is_some())
    })?;
    Some(PendingPrune { child: reference(), dependent: Some(stuck.id().reference()) })
}
