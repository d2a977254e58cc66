//! Children that a new output no longer lists: they are marked, and go when nobody wanted leans on them.

use super::pass::{CHUNK, Stop, ended};
use crate::evaluate::Shared;
use converge_domain::ResourceId;
use converge_domain::composition::Graph;
use converge_domain::resource::{HeldPrune, Pass, ResourceCommand, ResourceState};
use converge_event_store::StoreError;
use sha2::{Digest, Sha256};

/// What an output lists: by name, and by the id that each name had when it was looked up.
pub(super) struct Wanted<'a> {
    graph: &'a Graph,
    /// Sorted.
    ids: Vec<ResourceId>,
}

impl<'a> Wanted<'a> {
    /// `ids`: those of the listed names that are held.
    pub fn new(graph: &'a Graph, ids: impl Iterator<Item = ResourceId>) -> Self {
        let mut ids: Vec<ResourceId> = ids.collect();
        ids.sort_unstable();
        Self { graph, ids }
    }

    fn has(&self, id: &ResourceId) -> bool {
        self.ids.binary_search(id).is_ok()
    }

    /// Whether a child that is not among the ids is one to drop.
    fn would_drop(&self, child: &ResourceState) -> bool {
        // Another process that applies the same pass may have made it since the names were looked up, under an id
        // that we do not know. What is wanted is a name; going by the id would destroy what was just made.
        let is_listed = self.graph.id(&child.id().reference()).is_some();
        child.deletion.is_none() && child.dropped.is_none() && child.quarantine.is_none() && !is_listed
    }
}

impl Shared {
    /// Marks every owned child that the output no longer lists.
    pub(super) async fn drop_unwanted(
        &self,
        composer: ResourceId,
        pass: &Pass,
        wanted: &Wanted<'_>,
    ) -> Result<u64, Stop> {
        let mut dropped = 0;
        let mut after = None;
        loop {
            let children = self.core().store.children(composer, after, CHUNK as u32).await?;
            let Some(last) = children.last() else { return Ok(dropped) };
            after = Some(*last);
            let unwanted: Vec<_> = children.into_iter().filter(|child| !wanted.has(child)).collect();
            let unwanted = self.core().resources_now(&unwanted).await?;
            let drops = unwanted.values().map(|child| self.drop_one(composer, pass, child, wanted));
            for marked in futures::future::join_all(drops).await {
                dropped += u64::from(marked?);
            }
        }
    }

    /// The removals that this pass would make, if they are more than the kind's `prune_share_max` allows and are not the
    /// ones that an operator confirmed.
    pub(super) async fn held_prune(
        &self,
        composer: &ResourceState,
        wanted: &Wanted<'_>,
    ) -> Result<Option<HeldPrune>, Stop> {
        let entry = self.core().registry.kind(&composer.kind_ref());
        let share = entry.and_then(|entry| entry.manifest.knobs.prune_share_max).unwrap_or(1.0);
        if share >= 1.0 {
            return Ok(None);
        }
        let (mut unwanted, mut hash, mut after) = (0_u64, Sha256::new(), None);
        loop {
            let children = self.core().store.children(composer.id().id, after, CHUNK as u32).await?;
            let Some(last) = children.last() else { break };
            after = Some(*last);
            let page: Vec<_> = children.into_iter().filter(|child| !wanted.has(child)).collect();
            let mut page: Vec<_> = self.core().resources_now(&page).await?.into_iter().collect();
            page.sort_unstable_by_key(|(id, _)| *id);
            for (id, _) in page.iter().filter(|(_, child)| wanted.would_drop(child)) {
                unwanted += 1;
                hash.update(id.0.as_bytes());
            }
        }
        let of = unwanted + wanted.ids.len() as u64;
        // Both are counts below a million: exact as floating point.
        if unwanted == 0 || unwanted as f64 <= share * of as f64 {
            return Ok(None);
        }
        let digest: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let confirmed = composer.prune_confirmed.as_ref() == Some(&digest);
        Ok((!confirmed).then_some(HeldPrune { digest, children: unwanted, of }))
    }

    async fn wanted_dependents(
        &self,
        child: ResourceId,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.core().store.dependents(child, after, CHUNK as u32).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = Some(*last);
            found.extend(page.into_iter().filter(|id| wanted.has(id)));
        }
    }

    async fn drop_one(
        &self,
        composer: ResourceId,
        pass: &Pass,
        state: &ResourceState,
        wanted: &Wanted<'_>,
    ) -> Result<bool, Stop> {
        let child = state.id().id;
        if !wanted.would_drop(state) {
            return Ok(false);
        }
        let entry = self.core().registry.kind(&state.kind_ref());
        let grace = entry.and_then(|entry| entry.manifest.knobs.orphan_grace_secs).filter(|secs| *secs > 0);
        let at = self.core().now();
        let former_dependents = self.wanted_dependents(child, wanted).await?;
        let command = ResourceCommand::Drop {
            composer,
            pass_id: pass.pass_id,
            former_dependents,
            kept_until: grace.map(|secs| at.plus_ms(i64::from(secs) * 1000)),
            at,
        };
        match self.core().execute(child, command).await {
            Ok(committed) => Ok(committed.steps.iter().any(|step| !step.events.is_empty())),
            Err(error) => Err(ended(error)),
        }
    }
}
