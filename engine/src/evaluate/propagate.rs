//! Carrying a changed status to dependents that have run before.
//!
//! Until every dependent was evaluated against it, the node stays open for its owner (`propagation_owed`), so
//! the owner cannot call itself Ready over a dependent that is about to reconcile again. A crash in between
//! leaves the mark, and the next process does it again.

use super::facts::upstream_facts;
use super::{Shared, Touch};
use converge_domain::resource::{Evaluate, ResourceCommand};
use converge_domain::{ResourceId, Sequence};
use converge_event_store::StoreError;
use std::sync::Arc;

const PAGE: u32 = 500;
/// Rounds in which dependents may move under their evaluation before it is begun anew.
const SUBSTITUTIONS_MAX: u32 = 20;

impl Shared {
    /// Starts carrying `id`'s status to its dependents.
    pub(super) fn propagate(self: &Arc<Self>, id: ResourceId) {
        let shared = self.clone();
        self.tracker.spawn(async move {
            if let Err(error) = shared.propagate_now(id).await {
                tracing::warn!(%id, %error, "a status could not be carried on; it is done again");
                shared.queue.push([(id, Touch::SELF)]);
            }
        });
    }

    async fn propagate_now(self: &Arc<Self>, id: ResourceId) -> Result<(), StoreError> {
        let Some(state) = self.core.resource_now(id).await? else { return Ok(()) };
        if !state.propagation_owed {
            return Ok(());
        }
        let outward = state.outward;
        let mut after = None;
        loop {
            let dependents = self.core.store.dependents(id, after, PAGE).await?;
            let Some(last) = dependents.last() else { break };
            after = Some(*last);
            self.substitute_all(&dependents).await?;
        }
        self.execute(id, ResourceCommand::ConfirmPropagated { outward }, Touch::SELF).await;
        Ok(())
    }

    /// Evaluates each dependent's upstreams until its decision stands.
    async fn substitute_all(self: &Arc<Self>, dependents: &[ResourceId]) -> Result<(), StoreError> {
        let mut left = dependents.to_vec();
        for _ in 0..SUBSTITUTIONS_MAX {
            left = self.substitute_once(&left).await?;
            if left.is_empty() {
                return Ok(());
            }
        }
        Err(StoreError::Retry(format!("{} dependents kept moving", left.len())))
    }

    /// One round; returns those whose decision did not stand. Everything is read from the database: what is found here to
    /// follow already is not looked at again.
    async fn substitute_once(
        self: &Arc<Self>,
        dependents: &[ResourceId],
    ) -> Result<Vec<ResourceId>, StoreError> {
        let states = self.core.resources_now(dependents).await?;
        let live = || states.values().filter(|state| state.deletion.is_none() && state.dropped.is_none());
        let upstreams: Vec<ResourceId> =
            live().flat_map(|state| state.edges.iter().map(|edge| edge.upstream)).collect();
        let upstreams = self.core.resources_now(&upstreams).await?;
        let evaluations = live().filter_map(|state| {
            let facts = upstream_facts(state, &upstreams);
            let evaluate = Evaluate {
                expected: Sequence(state.sequence),
                rejection: self.rejection(state, &facts),
                upstreams: facts,
                children: None,
                held_by: None,
                at: self.core.now(),
            };
            let id = state.id().id;
            state.is_moved_by(&evaluate).then_some(async move {
                let command = ResourceCommand::Evaluate(Box::new(evaluate));
                let failed = self.core.execute(id, command).await.err();
                failed.map(|error| {
                    tracing::debug!(dependent = %id, %error, "a substitution is done again");
                    id
                })
            })
        });
        let failed = futures::future::join_all(evaluations).await;
        Ok(failed.into_iter().flatten().collect())
    }

    /// Wakes a hub's dependents page by page.
    pub(super) fn walk_dependents(self: &Arc<Self>, upstream: ResourceId) {
        let shared = self.clone();
        self.tracker.spawn(async move {
            let mut after = None;
            loop {
                match shared.core.store.dependents(upstream, after, PAGE).await {
                    Ok(page) => {
                        let Some(last) = page.last() else { return };
                        after = Some(*last);
                        shared.queue.push(page.iter().map(|dependent| (*dependent, Touch::SELF)));
                        shared.queue.drained_below(super::BATCH * 8).await;
                    }
                    Err(error) => {
                        tracing::warn!(%upstream, %error, "cannot walk dependents; the walk starts again");
                        shared.queue.push([(upstream, Touch::DEPENDENTS)]);
                        return;
                    }
                }
            }
        });
    }
}
