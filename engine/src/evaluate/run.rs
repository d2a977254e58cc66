//! One batch: read, decide, tell.

use super::facts::upstream_facts;
use super::{Shared, Touch};
use crate::resources::Resources;
use converge_domain::resource::{
    ChildrenFact, Evaluate, HeldBy, Input, Phase, ResourceCommand, ResourceError, ResourceState, UpstreamFact,
};
use converge_domain::schema::Violation;
use converge_domain::{DomainError, ResourceId, Sequence, value_flow};
use converge_event_store::{ExecuteError, StoreError};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Dependents read for one batch; a hub beyond that is walked page by page.
const DEPENDENTS_MAX: u32 = 5000;

impl Shared {
    pub(super) async fn evaluate_batch(
        self: &Arc<Self>,
        batch: &[(ResourceId, Touch)],
    ) -> Result<(), StoreError> {
        let ids: Vec<_> = batch.iter().map(|(id, _)| *id).collect();
        let heads = self.core.resources(&ids).await?;
        let mut upstreams = Vec::new();
        for state in heads.values().filter(|state| state.deletion.is_none() && state.dropped.is_none()) {
            upstreams.extend(state.edges.iter().map(|edge| edge.upstream));
        }
        let upstreams = self.core.resources(&upstreams).await?;

        let held = self.held_back(&heads).await?;

        let mut evaluations = Vec::with_capacity(batch.len());
        for (id, touch) in batch {
            if let Some(state) = heads.get(id) {
                let held = held.get(id);
                evaluations.push(self.evaluate_one(*id, state.clone(), *touch, &upstreams, held));
            }
        }
        for result in futures::future::join_all(evaluations).await {
            result?;
        }
        self.tell(batch, &heads).await
    }

    /// Wakes those that wait on what was just evaluated: dependents first, then owners.
    async fn tell(
        self: &Arc<Self>,
        batch: &[(ResourceId, Touch)],
        heads: &Resources,
    ) -> Result<(), StoreError> {
        let upstreams: Vec<_> =
            batch.iter().filter(|(_, touch)| touch.tells_dependents()).map(|(id, _)| *id).collect();
        if !upstreams.is_empty() {
            let pairs = self.core.store.dependents_many(&upstreams, DEPENDENTS_MAX).await?;
            if pairs.len() < DEPENDENTS_MAX as usize {
                self.queue.push(pairs.into_iter().map(|(_, dependent)| (dependent, Touch::SELF)));
            } else {
                for upstream in upstreams {
                    self.walk_dependents(upstream);
                }
            }
        }
        for (id, touch) in batch {
            if !touch.tells_owner() {
                continue;
            }
            if let Some(owner) = heads.get(id).and_then(|state| state.id().owner()) {
                self.queue.push_owner(owner, *id);
            }
        }
        Ok(())
    }

    async fn evaluate_one(
        self: &Arc<Self>,
        id: ResourceId,
        state: Arc<ResourceState>,
        touch: Touch,
        upstreams: &Resources,
        held: Option<&HeldBy>,
    ) -> Result<(), StoreError> {
        if state.deletion.is_some() {
            self.evaluate_deleting(id, &state, touch, held).await;
            return Ok(());
        }
        if touch.frees() {
            // If the owner is going away, its cascade came by while this one could not be taken.
            self.queue.push(state.id().owner().map(|owner| (owner, Touch::CASCADE_AGAIN)));
        }
        if state.pass.is_some() {
            self.run_pass(id);
            return Ok(());
        }
        let now = self.core.now();
        if state.dropped.as_ref().and_then(|mark| mark.kept_until).is_some_and(|until| until <= now) {
            self.execute(id, ResourceCommand::EndGrace { at: now }, touch).await;
            return Ok(());
        }
        // It was given its edge after the delete had walked by: the delete has to take it too, or both wait for ever.
        let going =
            state.edges.iter().map(|edge| edge.upstream).filter(|upstream| {
                upstreams.get(upstream).is_some_and(|upstream| upstream.deletion.is_some())
            });
        self.queue.push(going.map(|upstream| (upstream, Touch::CASCADE_AGAIN)));
        if state.awaits_names() && self.look_at_names(&state).await? {
            return Ok(());
        }
        let facts = upstream_facts(&state, upstreams);
        let children = self.children_fact(id, &state).await?;
        let has_upstreams =
            !state.edges.is_empty() || !state.inputs.is_empty() || !state.unresolved.is_empty();
        if has_upstreams || children.is_some() {
            self.decide(id, &state, facts, children, touch).await;
        }
        if state.propagation_owed && state.phase() == Phase::Ready {
            self.propagate(id);
        }
        Ok(())
    }

    async fn decide(
        self: &Arc<Self>,
        id: ResourceId,
        state: &ResourceState,
        upstreams: Vec<UpstreamFact>,
        children: Option<ChildrenFact>,
        touch: Touch,
    ) {
        let evaluate = Evaluate {
            expected: Sequence(state.sequence),
            rejection: self.rejection(state, &upstreams),
            upstreams,
            children,
            held_by: None,
            at: self.core.now(),
        };
        // Nothing to append needs no proof that the state is current: whatever moved it since the wake that led here
        // wakes it again.
        if state.is_moved_by(&evaluate) {
            self.execute(id, ResourceCommand::Evaluate(Box::new(evaluate)), touch).await;
        }
    }

    /// What the schema says of the spec with its flowed values in; None while one is missing, or nothing is to run.
    pub(super) fn rejection(&self, state: &ResourceState, upstreams: &[UpstreamFact]) -> Option<String> {
        let mut flows = state.edges.iter().flat_map(|edge| &edge.values).peekable();
        flows.peek()?;
        if upstreams.iter().any(|upstream| !upstream.ready) {
            return None;
        }
        let plan = value_flow::plan_inputs(&state.edges, &state.inputs, upstreams);
        if plan.changed.is_empty() && !state.work_is_behind() && !state.composition_is_behind() {
            return None;
        }
        let mut inputs: Vec<Input> = state.inputs.clone();
        inputs.retain(|held| !plan.changed.iter().any(|new| new.field == held.field));
        inputs.extend(plan.changed.iter().cloned());
        if !flows.all(|flow| inputs.iter().any(|input| input.field == flow.dependent_field)) {
            return None;
        }
        let entry = self.core.registry.kind(&state.kind_ref())?;
        let spec = value_flow::effective_spec(&state.spec, &inputs);
        let violations = entry.spec_schema?.violations(&spec);
        (!violations.is_empty()).then(|| rejection(&violations))
    }

    async fn children_fact(
        self: &Arc<Self>,
        id: ResourceId,
        state: &Arc<ResourceState>,
    ) -> Result<Option<ChildrenFact>, StoreError> {
        if !state.shape.composes || state.composed.is_none() {
            return Ok(None);
        }
        let summary = self.core.store.children_summary(id).await?;
        // Dropped children wait for their former dependents: the owner must look each time one moves.
        let witness = if summary.dropped.is_empty() { summary.open } else { None };
        self.queue.note_witness(id, witness);
        // Only what the live generation dropped goes: one that is to be composed again may want them back.
        if !state.work_is_behind() && !state.composition_is_behind() {
            if !summary.dropped.is_empty() || !state.prune_pending.is_empty() {
                self.prune(state, &summary.dropped).await?;
            }
            if summary.dropped.is_empty() {
                self.collect_unlisted_configs(state).await?;
            }
        }
        // The digest is read after the summary. A child that opens in between fails the guard; one that changes
        // its status without opening wakes this resource again.
        let digest = match summary.open {
            Some(_) => None,
            None => Some(self.core.store.children_digest(id).await?.1),
        };
        let entry = self.core.registry.kind(&state.kind_ref());
        let recompose = entry.and_then(|entry| entry.manifest.knobs.recompose_on_children).unwrap_or(false);
        Ok(Some(ChildrenFact { open: summary.open, impaired: summary.impaired, digest, recompose }))
    }

    /// What holds those back whose teardown might open, in one read.
    async fn held_back(&self, heads: &Resources) -> Result<HashMap<ResourceId, HeldBy>, StoreError> {
        let waits = |state: &&Arc<ResourceState>| {
            state.claim.is_none() && state.deletion.as_ref().is_some_and(|deletion| !deletion.open)
        };
        let ids: Vec<ResourceId> = heads.values().filter(waits).map(|state| state.id().id).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let held = self.core.store.held(&ids).await?.into_iter();
        Ok(held
            .map(|held| (held.id, HeldBy { dependents: held.by_dependents, children: held.by_children }))
            .collect())
    }

    async fn evaluate_deleting(
        self: &Arc<Self>,
        id: ResourceId,
        state: &Arc<ResourceState>,
        touch: Touch,
        held: Option<&HeldBy>,
    ) {
        // Nothing is marked where there is nothing; whoever comes later is taken by the edge that it brings.
        let holds = |held: &HeldBy| held.dependents || held.children;
        if touch.cascades() && held.is_none_or(holds) {
            self.cascade(id);
        }
        let Some(held_by) = held.filter(|held| !holds(held)).cloned() else { return };
        let evaluate = Evaluate {
            expected: Sequence(state.sequence),
            upstreams: vec![],
            children: None,
            rejection: None,
            held_by: Some(held_by),
            at: self.core.now(),
        };
        self.execute(id, ResourceCommand::Evaluate(Box::new(evaluate)), touch).await;
    }

    /// One engine command; wakes the resource again when it had moved.
    pub(super) async fn execute(self: &Arc<Self>, id: ResourceId, command: ResourceCommand, touch: Touch) {
        let result = self.core.execute(id, command).await.map(|_| ());
        self.after(id, touch, result);
    }

    fn after(self: &Arc<Self>, id: ResourceId, touch: Touch, result: Result<(), ExecuteError>) {
        match result {
            Ok(()) => {}
            Err(ExecuteError::Domain {
                error: DomainError::Resource(ResourceError::Moved { .. }), ..
            }) => {
                self.queue.push([(id, touch)]);
            }
            Err(ExecuteError::Domain { error: DomainError::Resource(ResourceError::NotFound), .. })
            | Err(ExecuteError::Closed) => {}
            Err(error) => {
                tracing::debug!(%id, %error, "an evaluation is done again");
                let shared = self.clone();
                self.tracker.spawn(async move {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    shared.queue.push([(id, touch)]);
                });
            }
        }
    }
}

/// The failure message for a spec that a flowed value made invalid.
fn rejection(violations: &[Violation]) -> String {
    let list: Vec<_> =
        violations.iter().map(|violation| format!("{}: {}", violation.pointer, violation.message)).collect();
    format!("the spec with its flowed values breaks the kind's schema: {}", list.join("; "))
}
