//! Applying an accepted output: drop marks, creates and updates in dependency order, then `Composed`.

use super::accept;
use super::layers::layers;
use super::output::{self, Output};
use crate::evaluate::Shared;
use converge_domain::composition::ChildItem;
use converge_domain::resource::{
    ComposerRef, Declare, Edge, Pass, ResourceCommand, ResourceError, ResourceState,
};
use converge_domain::{AnyEvent, DomainError, KindRef, ResourceId, ResourceRef};
use converge_event_store::{ExecuteError, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Children written per round: a few commits' worth, so that a pass never fills the log's queue.
const CHUNK: usize = 500;

/// How a pass ended.
enum End {
    Composed,
    /// It cannot be finished from what is staged.
    Abandoned(String),
    /// It waits for a dropped child of the same name to be gone; its end wakes the composer.
    Waiting,
    /// Somebody else finished or ended it.
    Over,
}

/// Why a chunk stopped.
enum Stop {
    Store(StoreError),
    End(End),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Shared {
    /// Starts applying the unfinished pass of `composer`, unless this process already does.
    pub(crate) fn run_pass(self: &Arc<Self>, composer: ResourceId) {
        if !self.passes().begin(composer) {
            return;
        }
        let shared = self.clone();
        self.tracker().spawn(async move {
            let result = shared.apply_pass(composer).await;
            if shared.passes().end(composer) {
                shared.wake(composer);
            }
            match result {
                // Not re-woken by us: `Composed` and the child's `Deleted` do that.
                Ok(End::Composed | End::Over | End::Waiting) => {}
                Ok(End::Abandoned(reason)) => tracing::warn!(%composer, reason, "a pass was abandoned"),
                Err(error) => {
                    tracing::warn!(%composer, %error, "a pass stopped; it goes on");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    shared.wake(composer);
                }
            }
        });
    }

    async fn apply_pass(&self, composer: ResourceId) -> Result<End, StoreError> {
        let Some(state) = self.core().resource_now(composer).await? else { return Ok(End::Over) };
        let Some(pass) = state.pass.clone() else { return Ok(End::Over) };
        let end = match self.write_children(&state, &pass).await {
            Ok(end) => end,
            Err(Stop::End(end)) => end,
            Err(Stop::Store(error)) => return Err(error),
        };
        if let End::Abandoned(reason) = &end {
            let command = ResourceCommand::AbandonPass {
                pass_id: pass.pass_id,
                reason: reason.clone(),
                at: self.core().now(),
            };
            if let Err(ExecuteError::Store(error)) = self.core().execute(composer, command).await {
                return Err(error);
            }
        }
        if matches!(end, End::Composed | End::Abandoned(_)) {
            self.core().store.unstage(composer, pass.claim_id).await?;
        }
        Ok(end)
    }

    async fn write_children(&self, composer: &Arc<ResourceState>, pass: &Pass) -> Result<End, Stop> {
        let id = composer.id().id;
        let output = output::read(self.core(), id, pass.claim_id).await?;
        if output.digest != pass.digest {
            return Ok(End::Abandoned("its staged output is gone".to_owned()));
        }
        let graph = match accept::graph(&output) {
            Ok(graph) => graph,
            Err(errors) => return Ok(End::Abandoned(errors.join("; "))),
        };
        let ids = self.child_ids(&output).await?;
        let edges = edges_by_child(&output, &ids);
        let Some(going) = self.going(&ids).await? else { return Ok(End::Waiting) };
        let left_alone = left_alone(going, graph.order(), &output, &ids, &edges);

        // Drop marks come first: each records who leans on the dropped child *before* this pass gives those
        // another upstream, so that a crash between the two cannot lose it. Removal comes after `Composed`.
        let wanted = Wanted { names: ids.keys().collect(), ids: ids.values().copied().collect() };
        let dropped = self.drop_unwanted(id, pass, &wanted).await?;

        let mut ancestors = vec![id];
        ancestors.extend(&composer.id().ancestors);
        let writer = Writer {
            shared: self,
            composer: ComposerRef { ancestors, pass_id: pass.pass_id },
            output: &output,
            ids: &ids,
            edges: &edges,
            left_alone: &left_alone,
        };
        let (mut created, mut changed) = (0, 0);
        for layer in layers(graph.order(), |index| id_at(&output, &ids, index), &edges) {
            for chunk in layer.chunks(CHUNK) {
                let (new, updated) = writer.write(chunk).await?;
                created += new;
                changed += updated;
            }
        }
        let at = self.core().now();
        let complete = ResourceCommand::CompletePass { pass_id: pass.pass_id, created, changed, dropped, at };
        match self.core().execute(id, complete).await {
            Ok(_) => Ok(End::Composed),
            Err(error) => Err(ended(error)),
        }
    }

    /// The id of every wanted child: the holder of its name, or a new one.
    async fn child_ids(&self, output: &Output) -> Result<HashMap<ResourceRef, ResourceId>, StoreError> {
        let mut ids = HashMap::with_capacity(output.children.len());
        for chunk in output.children.chunks(CHUNK) {
            let names: Vec<_> =
                chunk.iter().map(|child| ResourceRef::new(&child.kind, &child.name)).collect();
            for (name, holder) in self.core().store.names(&names).await? {
                ids.insert(name, ResourceId(holder.0));
            }
            for name in names {
                ids.entry(name).or_insert_with(|| ResourceId(Uuid::now_v7()));
            }
        }
        Ok(ids)
    }

    /// The wanted children that a delete is taking away; None when one of them is a dropped one on its way out.
    ///
    /// That one has to be gone before its successor can be made, and nothing may be given an edge to it meanwhile: it
    /// would wait for its new dependent, which waits for this pass, which waits for it. So nothing is written yet; the
    /// end of the dropped child wakes the composer.
    async fn going(
        &self,
        ids: &HashMap<ResourceRef, ResourceId>,
    ) -> Result<Option<HashSet<ResourceId>>, StoreError> {
        let ids: Vec<ResourceId> = ids.values().copied().collect();
        let mut going = HashSet::new();
        for chunk in ids.chunks(CHUNK) {
            for (id, state) in self.core().resources_now(chunk).await? {
                if state.deletion.is_none() {
                    continue;
                }
                if state.dropped.is_some() {
                    return Ok(None);
                }
                going.insert(id);
            }
        }
        Ok(Some(going))
    }

    /// Marks every owned child that the output no longer lists.
    async fn drop_unwanted(
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
            let unwanted: Vec<_> = children.into_iter().filter(|child| !wanted.ids.contains(child)).collect();
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
            found.extend(page.into_iter().filter(|id| wanted.ids.contains(id)));
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
        if wanted.names.contains(&state.id().reference()) {
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

/// What an output lists: by name, and by the id that each name had when it was looked up.
struct Wanted<'a> {
    names: HashSet<&'a ResourceRef>,
    ids: HashSet<ResourceId>,
}

/// Writes chunks of children.
struct Writer<'a> {
    shared: &'a Shared,
    composer: ComposerRef,
    output: &'a Output,
    ids: &'a HashMap<ResourceRef, ResourceId>,
    edges: &'a HashMap<ResourceId, Vec<Edge>>,
    /// Children that this pass does not touch.
    left_alone: &'a HashSet<ResourceId>,
}

impl Writer<'_> {
    /// Declares the children at `indexes`; how many were created and how many changed.
    async fn write(&self, indexes: &[u32]) -> Result<(u64, u64), Stop> {
        let declares = indexes.iter().filter_map(|index| {
            let child = self.output.children.get(*index as usize)?;
            let id = *self.ids.get(&ResourceRef::new(&child.kind, &child.name))?;
            (!self.left_alone.contains(&id)).then(|| self.declare(id, child))
        });
        let (mut created, mut changed) = (0, 0);
        for result in futures::future::join_all(declares).await {
            match result? {
                Some(true) => created += 1,
                Some(false) => changed += 1,
                None => {}
            }
        }
        Ok((created, changed))
    }

    /// Some(true) when created, Some(false) when changed, None when it was as wanted.
    async fn declare(&self, id: ResourceId, child: &ChildItem) -> Result<Option<bool>, Stop> {
        let core = self.shared.core();
        let kind = KindRef::new(&child.kind, child.kind_version);
        let Some(entry) = core.registry.kind(&kind) else {
            return Err(Stop::End(End::Abandoned(format!("kind {kind} is gone"))));
        };
        let declare = Declare {
            id,
            reference: ResourceRef::new(&child.kind, &child.name),
            kind_version: child.kind_version,
            spec: Arc::new(child.spec.clone()),
            labels: child.labels.clone(),
            provider_config_ref: child.provider_config_ref.clone(),
            deletion_protection: child.deletion_protection,
            edges: self.edges.get(&id).cloned().unwrap_or_default(),
            shape: entry.shape,
            composer: Some(self.composer.clone()),
            expected_revision: None,
            at: core.now(),
        };
        match core.execute(id, ResourceCommand::Declare(Box::new(declare))).await {
            Ok(committed) => {
                let events = committed.steps.iter().flat_map(|step| &step.events);
                let mut verdict = None;
                for stored in events {
                    if let AnyEvent::Resource(event) = &stored.event {
                        verdict = Some(event.name() == "Created");
                    }
                }
                Ok(verdict)
            }
            Err(ExecuteError::Domain { error: DomainError::Resource(error), .. }) => {
                self.refused(id, child, error).await
            }
            // The name was taken between the look-up and the write: the next run finds its holder.
            Err(ExecuteError::NameTaken) => {
                Err(Stop::Store(StoreError::Retry("a child's name was taken".to_owned())))
            }
            Err(error) => Err(ended(error)),
        }
    }

    async fn refused(
        &self,
        id: ResourceId,
        child: &ChildItem,
        error: ResourceError,
    ) -> Result<Option<bool>, Stop> {
        let core = self.shared.core();
        match error {
            ResourceError::Deleting => {
                let dropped = core.resource_now(id).await?.is_some_and(|state| state.dropped.is_some());
                // One that a user deleted is left alone: its end makes the composer run again. One that an
                // earlier pass dropped must be gone before its successor can be made.
                if dropped { Err(Stop::End(End::Waiting)) } else { Ok(None) }
            }
            ResourceError::Owned { .. } | ResourceError::UserDeclared => {
                let name = format!("{}/{}", child.kind, child.name);
                tracing::warn!(child = name, %error, "a composer does not get a child; the rest is applied");
                Ok(None)
            }
            error => Err(Stop::End(End::Abandoned(format!("{}/{}: {error}", child.kind, child.name)))),
        }
    }
}

/// What a failed command of a pass means for it: a guard that stays broken says that the pass is over.
fn ended(error: ExecuteError) -> Stop {
    match error {
        ExecuteError::Store(error) => Stop::Store(error),
        ExecuteError::Overloaded | ExecuteError::Closed => Stop::Store(StoreError::Retry(error.to_string())),
        ExecuteError::Conflict { .. }
        | ExecuteError::Domain { .. }
        | ExecuteError::NameTaken
        | ExecuteError::Duplicate => Stop::End(End::Over),
    }
}

/// Children that a delete is taking away, and whatever would depend on them: the delete takes those too, and what it has
/// taken already must not come back under it. The composer runs again when they are gone, and makes them anew.
fn left_alone(
    going: HashSet<ResourceId>,
    upstreams_first: &[u32],
    output: &Output,
    ids: &HashMap<ResourceRef, ResourceId>,
    edges: &HashMap<ResourceId, Vec<Edge>>,
) -> HashSet<ResourceId> {
    let mut left_alone = going;
    if left_alone.is_empty() {
        return left_alone;
    }
    for index in upstreams_first {
        let Some(id) = id_at(output, ids, *index) else { continue };
        if edges.get(&id).into_iter().flatten().any(|edge| left_alone.contains(&edge.upstream)) {
            left_alone.insert(id);
        }
    }
    left_alone
}

fn id_at(output: &Output, ids: &HashMap<ResourceRef, ResourceId>, index: u32) -> Option<ResourceId> {
    let child = output.children.get(index as usize)?;
    ids.get(&ResourceRef::new(&child.kind, &child.name)).copied()
}

fn edges_by_child(output: &Output, ids: &HashMap<ResourceRef, ResourceId>) -> HashMap<ResourceId, Vec<Edge>> {
    let mut edges: HashMap<ResourceId, Vec<Edge>> = HashMap::new();
    for edge in &output.edges {
        let (Some(from), Some(to)) = (ids.get(&edge.from), ids.get(&edge.to)) else { continue };
        edges.entry(*from).or_default().push(Edge {
            upstream: *to,
            upstream_ref: edge.to.clone(),
            values: edge.values.clone(),
        });
    }
    // The order in which a composer lists edges means nothing: sort, so that it makes no difference.
    for list in edges.values_mut() {
        list.sort_by(|a, b| a.upstream_ref.cmp(&b.upstream_ref));
    }
    edges
}
