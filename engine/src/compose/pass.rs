//! Applying an accepted output: drop marks, creates and updates in dependency order, then `Composed`.

use super::outline::{self, Outline};
use super::unwanted::Wanted;
use super::write::Writer;
use crate::evaluate::Shared;
use converge_domain::resource::{CompletePass, ComposerRef, Conflict, Pass, ResourceCommand, ResourceState};
use converge_domain::{AggregateId, ResourceId, ResourceRef, named};
use converge_event_store::{ExecuteError, StoreError};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use uuid::Uuid;

/// Children looked up or written together.
pub(super) const CHUNK: usize = 500;
/// Chunks under way at once: while one is appended the next are being decided, and a pass still never fills the log's
/// queue.
pub(super) const CHUNKS_IN_FLIGHT: usize = 4;

/// Conflicts that are kept of one pass.
const CONFLICTS_MAX: usize = 20;

/// How a pass ended.
pub(super) enum End {
    Composed,
    /// It cannot be finished from what is staged.
    Abandoned(String),
    /// It waits for a dropped child of the same name to be gone; its end wakes the composer.
    Waiting,
    /// Somebody else finished or ended it.
    Over,
}

/// Why a chunk stopped.
pub(super) enum Stop {
    Store(StoreError),
    End(End),
}

impl Stop {
    /// The staging table has lost what the pass needs.
    pub(super) fn output_gone() -> Self {
        Self::End(End::Abandoned("its staged output is gone".to_owned()))
    }
}

/// The id of every wanted child, by its place in the output.
pub(super) struct Ids {
    pub of: Vec<ResourceId>,
    /// Whether it was held by a live resource when it was looked up; the others are new.
    pub held: Vec<bool>,
}

impl Ids {
    fn all_held(&self) -> impl Iterator<Item = ResourceId> {
        self.of.iter().zip(&self.held).filter(|(_, held)| **held).map(|(id, _)| *id)
    }
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
        // What was read may be old when there is room: every write of a pass is guarded by "it is still the one".
        let _room = tokio::select! {
            () = self.stop().cancelled() => return Ok(End::Over),
            room = self.core().room.to_apply(pass.children) => room,
        };
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
        let outline = match self.core().outlines.take(pass.claim_id) {
            Some(outline) => outline,
            None => self.outline_again(id, pass).await?,
        };
        if outline.digest != pass.digest {
            return Err(Stop::output_gone());
        }
        let mut ids = self.child_ids(&outline).await?;
        let Some(held) = self.look_at_holders(id, &ids).await? else { return Ok(End::Waiting) };
        let conflicts = held.conflicts(id, &outline, &mut ids);
        let left_alone = left_alone(&held.going, &outline, &ids);
        let config_conflicts = self.declare_configs(id, pass, &outline.configs).await?;

        // Drop marks come first: each records who leans on the dropped child *before* this pass gives those
        // another upstream, so that a crash between the two cannot lose it. Removal comes after `Composed`.
        let wanted = Wanted::new(&outline.graph, ids.all_held());
        let held_prune = self.held_prune(composer, &wanted).await?;
        let dropped = match &held_prune {
            Some(_) => 0,
            None => self.drop_unwanted(id, pass, &wanted).await?,
        };

        let mut ancestors = vec![id];
        ancestors.extend(&composer.id().ancestors);
        let writer = Writer {
            core: self.core(),
            stop: self.stop(),
            composer: ComposerRef { ancestors, pass_id: pass.pass_id },
            outline: &outline,
            ids: &ids,
            left_alone: &left_alone,
            conflicts: &conflicts,
            sample: OnceLock::new(),
        };
        let (created, changed) = writer.write_all().await?;
        let sample = writer.sample.into_inner();
        let conflicts = config_conflicts.into_iter().chain(conflicts.into_values());
        let complete = CompletePass {
            pass_id: pass.pass_id,
            created,
            changed,
            dropped,
            conflicts: conflicts.take(CONFLICTS_MAX).collect(),
            held: held_prune,
            sample,
            configs: outline.configs.iter().map(|config| config.name.clone()).collect(),
            at: self.core().now(),
        };
        match self.core().execute(id, ResourceCommand::CompletePass(Box::new(complete))).await {
            Ok(_) => Ok(End::Composed),
            Err(error) => Err(ended(error)),
        }
    }

    async fn outline_again(&self, composer: ResourceId, pass: &Pass) -> Result<Outline, Stop> {
        let found = outline::find(self.core(), composer, pass.claim_id).await?;
        if !found.broken.is_empty() {
            return Err(Stop::output_gone());
        }
        let outline = found.outline(self.core()).await?;
        outline.map_err(|errors| Stop::End(End::Abandoned(errors.join("; "))))
    }

    /// The id of every wanted child: the holder of its name, or a new one.
    async fn child_ids(&self, outline: &Outline) -> Result<Ids, StoreError> {
        let places: Vec<u32> = (0..=u32::MAX).take(outline.len()).collect();
        let look_ups: Vec<_> =
            places.chunks(CHUNK).map(|places| self.holders(outline, places).boxed()).collect();
        let mut look_ups = stream::iter(look_ups).buffer_unordered(CHUNKS_IN_FLIGHT);
        let mut ids = Ids { of: Vec::with_capacity(places.len()), held: vec![false; places.len()] };
        ids.of.extend(places.iter().map(|_| ResourceId(Uuid::now_v7())));
        while let Some(holders) = look_ups.try_next().await? {
            for (name, holder) in holders {
                let Some(place) = outline.graph.id(&name) else { continue };
                ids.of[place as usize] = ResourceId(holder.0);
                ids.held[place as usize] = true;
            }
        }
        Ok(ids)
    }

    async fn holders(
        &self,
        outline: &Outline,
        places: &[u32],
    ) -> Result<Vec<(ResourceRef, AggregateId)>, StoreError> {
        let names: Vec<ResourceRef> = places.iter().map(|place| outline.graph.child(*place)).collect();
        self.core().store.names(&names).await
    }

    /// What has become of the holders of the listed names; None when one of them is a dropped one on its way out.
    ///
    /// That one has to be gone before its successor can be made, and nothing may be given an edge to it meanwhile: it
    /// would wait for its new dependent, which waits for this pass, which waits for it. So nothing is written yet; the
    /// end of the dropped child wakes the composer.
    async fn look_at_holders(&self, composer: ResourceId, ids: &Ids) -> Result<Option<Holders>, StoreError> {
        let held: Vec<ResourceId> = ids.all_held().collect();
        let mut holders = Holders::default();
        for chunk in held.chunks(CHUNK) {
            for (id, state) in self.core().resources_now(chunk).await? {
                let owner = state.id().owner();
                if owner != Some(composer) {
                    holders.foreign.insert(id, owner);
                } else if state.deletion.is_some() && state.dropped.is_some() {
                    return Ok(None);
                } else if state.deletion.is_some() {
                    holders.going.insert(id);
                }
            }
        }
        Ok(Some(holders))
    }
}

/// What has become of those who hold the names that an output lists.
#[derive(Default)]
struct Holders {
    /// Own children that a delete is taking away.
    going: HashSet<ResourceId>,
    /// Resources of others, with their owners.
    foreign: HashMap<ResourceId, Option<ResourceId>>,
}

impl Holders {
    /// The places whose names others hold. They get ids of their own, to which nothing is ever written, and which stay the
    /// same from pass to pass: whatever leans on such a child is blocked until the conflict is resolved, and a
    /// pass that finds it unresolved changes nothing.
    fn conflicts(&self, composer: ResourceId, outline: &Outline, ids: &mut Ids) -> BTreeMap<u32, Conflict> {
        let mut conflicts = BTreeMap::new();
        if self.foreign.is_empty() {
            return conflicts;
        }
        for place in (0..=u32::MAX).take(outline.len()) {
            let id = &mut ids.of[place as usize];
            let Some(owner) = self.foreign.get(id).copied() else { continue };
            let child = outline.graph.child(place);
            let nobody = ResourceId(named("conflict", &format!("{composer}/{child}")));
            conflicts.insert(place, Conflict { child, holder: std::mem::replace(id, nobody), owner });
            ids.held[place as usize] = false;
        }
        conflicts
    }
}

/// What a failed command of a pass means for it: a guard that stays broken says that the pass is over.
pub(super) fn ended(error: ExecuteError) -> Stop {
    match error {
        ExecuteError::Store(error) => Stop::Store(error),
        ExecuteError::Overloaded | ExecuteError::Closed => Stop::Store(StoreError::Retry(error.to_string())),
        ExecuteError::Conflict { .. }
        | ExecuteError::Domain { .. }
        | ExecuteError::NameTaken
        | ExecuteError::Duplicate => Stop::End(End::Over),
    }
}

/// The places of children that a delete is taking away, and of whatever would depend on them: the delete takes those too,
/// and what it has taken already must not come back under it. The composer runs again when they are gone, and makes them
/// anew.
fn left_alone(going: &HashSet<ResourceId>, outline: &Outline, ids: &Ids) -> HashSet<u32> {
    let mut left_alone = HashSet::new();
    if going.is_empty() {
        return left_alone;
    }
    for place in outline.graph.order() {
        let leans_on_one =
            outline.graph.upstreams(*place).iter().any(|upstream| left_alone.contains(upstream));
        if leans_on_one || going.contains(&ids.of[*place as usize]) {
            left_alone.insert(*place);
        }
    }
    left_alone
}
