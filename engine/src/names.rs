//! Those who wait for a name: to be borne by somebody (an upstream that is not there yet), or to be free (a child that another
//! holds, a resource whose predecessor is going away).
//!
//! Each has an edge to the name ([`ResourceRef::name_id`]). Nobody is forgotten, whichever comes first: if the wait commits before
//! the fact it waits for, whoever hears of the fact finds the edge; if it commits after, the evaluation that follows the wait's
//! own event reads the name as it is by then.

use crate::evaluate::Shared;
use converge_domain::guard::Guard;
use converge_domain::resource::{ResourceCommand, ResourceState};
use converge_domain::{ResourceId, ResourceRef, Sequence};
use converge_event_store::{ExecuteError, StoreError};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Upstreams that are looked through for a cycle at most.
const WALKED_MAX: usize = 10_000;

/// What is found when one looks for a way from an upstream back to a name.
pub(crate) enum Walk {
    /// There is none, as long as these stay as they were read.
    Acyclic(Vec<Guard>),
    /// The shortest way.
    Cycle(Vec<ResourceRef>),
    /// It is too far to tell.
    TooLarge,
}

impl crate::engine::Core {
    /// The bearers of names, as the database has them now.
    pub async fn bearers(
        &self,
        names: &[ResourceRef],
    ) -> Result<HashMap<ResourceRef, Arc<ResourceState>>, StoreError> {
        let held = self.store.names(names).await?;
        let ids: Vec<ResourceId> = held.iter().map(|(_, id)| ResourceId(id.0)).collect();
        let states = self.resources_now(&ids).await?;
        let bearer = |(name, id): (ResourceRef, converge_domain::AggregateId)| {
            Some((name, states.get(&ResourceId(id.0))?.clone()))
        };
        Ok(held.into_iter().filter_map(bearer).collect())
    }

    /// The one that waits for `name` to be free, if somebody does.
    pub async fn next_bearer(&self, name: &ResourceRef) -> Result<Option<Arc<ResourceState>>, StoreError> {
        let waiting = self.store.dependents(name.name_id(), None, 1000).await?;
        let states = self.resources_now(&waiting).await?;
        let is_next = |state: &&Arc<ResourceState>| {
            state.behind.is_some() && state.deletion.is_none() && state.id().reference() == *name
        };
        Ok(states.values().find(is_next).cloned())
    }

    /// Whether `from` leads back to `to`, by the names of upstreams: also over edges that wait for theirs. `declared` says what is to
    /// be declared together with the new edge and is not stored yet.
    pub async fn walk_upstreams(
        &self,
        from: &ResourceRef,
        to: &ResourceRef,
        declared: &HashMap<ResourceRef, Vec<ResourceRef>>,
    ) -> Result<Walk, StoreError> {
        let mut came_from: HashMap<ResourceRef, ResourceRef> = HashMap::new();
        let (mut seen, mut guards) = (HashSet::from([from.clone()]), Vec::new());
        let mut frontier = VecDeque::from([from.clone()]);
        while !frontier.is_empty() {
            if seen.len() > WALKED_MAX {
                return Ok(Walk::TooLarge);
            }
            let layer: Vec<ResourceRef> = frontier.drain(..).collect();
            let stored: Vec<ResourceRef> =
                layer.iter().filter(|name| !declared.contains_key(name)).cloned().collect();
            let bearers = if stored.is_empty() { HashMap::new() } else { self.bearers(&stored).await? };
            for name in layer {
                let upstreams: Vec<ResourceRef> = match (declared.get(&name), bearers.get(&name)) {
                    (Some(upstreams), _) => upstreams.clone(),
                    (None, Some(state)) => {
                        let id = state.id().id.into();
                        guards.push(Guard::Unmoved { id, sequence: Sequence(state.sequence) });
                        state.edges.iter().map(|edge| edge.upstream_ref.clone()).collect()
                    }
                    (None, None) => vec![],
                };
                for upstream in upstreams {
                    if seen.insert(upstream.clone()) {
                        came_from.insert(upstream.clone(), name.clone());
                        frontier.push_back(upstream.clone());
                    }
                    if upstream == *to {
                        return Ok(Walk::Cycle(path(&came_from, from, to)));
                    }
                }
            }
        }
        Ok(Walk::Acyclic(guards))
    }
}

/// From the new edge's dependent over `from` back to itself.
fn path(
    came_from: &HashMap<ResourceRef, ResourceRef>,
    from: &ResourceRef,
    to: &ResourceRef,
) -> Vec<ResourceRef> {
    let mut path = vec![to.clone()];
    let mut at = to;
    while at != from {
        let Some(previous) = came_from.get(at) else { break };
        path.push(previous.clone());
        at = previous;
    }
    path.push(to.clone());
    path.reverse();
    path
}

/// `a -> b -> a`.
pub(crate) fn arrows(path: &[ResourceRef]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
}

impl Shared {
    /// Does what the names that `state` waits for allow now. True: something was decided, and its event wakes it again.
    pub(crate) async fn look_at_names(&self, state: &ResourceState) -> Result<bool, StoreError> {
        // Before the look: a name that is taken or freed after it is heard of by a process that knows that somebody waits.
        self.core().await_names();
        let id = state.id().id;
        let at = self.core().now();
        if state.behind.is_some() {
            let own = [state.id().reference()];
            if !self.core().store.names(&own).await?.is_empty() {
                return Ok(false);
            }
            return self.tried(id, ResourceCommand::TakeName { at }, vec![]).await;
        }
        if !state.conflicts.is_empty() && !state.composition_is_behind() && self.a_name_is_free(state).await?
        {
            let reason = "the name of a child that another held is free".to_owned();
            return self.tried(id, ResourceCommand::RequestRecompose { reason }, vec![]).await;
        }
        let (mut bound, mut guards) = (Vec::new(), Vec::new());
        let unbound: Vec<ResourceRef> =
            state.edges.iter().filter(|edge| edge.unbound).map(|edge| edge.upstream_ref.clone()).collect();
        if unbound.is_empty() {
            return Ok(false);
        }
        for (name, upstream) in self.core().bearers(&unbound).await? {
            // One that is going away makes room for the one that is meant; a composer's child is not for others to lean on.
            if upstream.deletion.is_some() || upstream.id().owner().is_some() {
                continue;
            }
            let own = state.id().reference();
            // Two that were declared at the same time, each before the other was there, would wait for each other.
            if let Walk::Acyclic(read) = self.core().walk_upstreams(&name, &own, &HashMap::new()).await? {
                guards.extend(read);
                // The bearer as it was chosen: the walk read it once more, and it may have begun to go in between.
                let id = upstream.id().id;
                guards.push(Guard::Unmoved { id: id.into(), sequence: Sequence(upstream.sequence) });
                bound.push((name, id));
            }
        }
        if bound.is_empty() {
            return Ok(false);
        }
        self.tried(id, ResourceCommand::BindUpstreams { bound, at }, guards).await
    }

    /// Whether a child that somebody else held could be made now.
    async fn a_name_is_free(&self, composer: &ResourceState) -> Result<bool, StoreError> {
        let names: Vec<ResourceRef> =
            composer.conflicts.iter().map(|conflict| conflict.child.clone()).collect();
        let held = self.core().store.names(&names).await?;
        // The holder may be another one by now, which is a conflict as good as the first.
        Ok(names.iter().any(|name| !held.iter().any(|(taken, _)| taken == name)))
    }

    async fn tried(
        &self,
        id: ResourceId,
        command: ResourceCommand,
        guards: Vec<Guard>,
    ) -> Result<bool, StoreError> {
        let mut group = self.core().group(id, command);
        group.guards = guards;
        match self.core().log.execute(group).await {
            Ok(_) => Ok(true),
            // Whoever moved what was read wakes this one again.
            Err(ExecuteError::NameTaken | ExecuteError::Domain { .. }) => Ok(false),
            Err(ExecuteError::Store(error)) => Err(error),
            Err(error) => Err(StoreError::Retry(error.to_string())),
        }
    }
}
