//! Children that a new output no longer lists: they are marked, and go when nobody wanted leans on them.

use super::pass::{CHUNK, Stop, ended};
use crate::evaluate::Shared;
use converge_domain::ResourceId;
use converge_domain::composition::Graph;
use converge_domain::resource::{Pass, ResourceCommand, ResourceState};
use converge_event_store::StoreError;

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
        if state.deletion.is_some() || state.dropped.is_some() {
            return Ok(false);
        }
        // Another process that applies the same pass may have made it since the names were looked up, under an id
        // that we do not know. What is wanted is a name; going by the id would destroy what was just made.
        if wanted.graph.id(&state.id().reference()).is_some() {
            return Ok(false);
        }
        let grace = self
            .core()
            .registry
            .kind(&state.kind_ref())
            .and_then(|entry| entry.manifest.knobs.orphan_grace_secs);
        let former_dependents = self.wanted_dependents(child, wanted).await?;
        let command = ResourceCommand::Drop {
            composer,
            pass_id: pass.pass_id,
            former_dependents,
            kept: grace.unwrap_or(0) > 0,
            at: self.core().now(),
        };
        match self.core().execute(child, command).await {
            Ok(committed) => Ok(committed.steps.iter().any(|step| !step.events.is_empty())),
            Err(error) => Err(ended(error)),
        }
    }
}
