//! One true sentence about what a resource waits for.

use crate::gateway::EngineGateway;
use crate::gateway_api::{GatewayError, Why};
use crate::names::{Walk, arrows};
use converge_domain::resource::{Gate, Phase, Reaction, ResourceState, Standing};
use converge_domain::{ResourceId, ResourceRef};
use converge_event_store::StoreError;
use std::collections::HashMap;

impl EngineGateway {
    pub(crate) async fn explain(&self, id: ResourceId) -> Result<Why, GatewayError> {
        let Some(state) = self.by_id(id).await? else {
            return Err(GatewayError::NotFound(format!("{id} does not exist")));
        };
        let sentence =
            self.sentence(&state).await.map_err(|error| GatewayError::Unavailable(error.to_string()))?;
        Ok(Why { sentence })
    }

    async fn sentence(&self, state: &ResourceState) -> Result<String, StoreError> {
        match state.phase() {
            Phase::Ready if state.unresolved.is_empty() => Ok(String::new()),
            Phase::Deleting => self.why_deleting(state).await,
            Phase::Failed => Ok(format!("Failed for generation {}: {}", state.generation, failure(state))),
            Phase::Orphaned => {
                let until = state.dropped.as_ref().and_then(|mark| mark.kept_until);
                let until = until.map_or_else(String::new, |until| format!(" until {until}"));
                Ok(format!("Its composer no longer wants it; it is kept{until}, its kind's grace window."))
            }
            Phase::Degraded => self.why_degraded(state).await,
            Phase::Quarantined => {
                let quarantine = state.quarantine.clone().unwrap_or_default();
                let reason = match quarantine.reason.as_str() {
                    "" => String::new(),
                    reason => format!(": {reason}"),
                };
                Ok(format!("In quarantine since {}{reason}; it waits for its release.", quarantine.since))
            }
            Phase::Ready | Phase::Reconciling => self.why_moving(state).await,
        }
    }

    async fn why_deleting(&self, state: &ResourceState) -> Result<String, StoreError> {
        let id = state.id().id;
        if let Some(claim) = &state.claim {
            return Ok(match claim.reaction {
                Reaction::Teardown => running(state),
                _ => format!("Waits for worker {} to answer the task it still runs.", claim.worker),
            });
        }
        let store = &self.core.store;
        if let Some(dependent) = store.dependents(id, None, 1).await?.first() {
            return self.waits_until_gone(*dependent, "depends on it").await;
        }
        if let Some(child) = store.children(id, None, 1).await?.first() {
            return self.waits_until_gone(*child, "it owns").await;
        }
        if state.last_failure.is_some() {
            return Ok(retrying(state));
        }
        self.why_queued(state).await
    }

    /// One that no cascade takes is named with what to do about it.
    async fn waits_until_gone(&self, other: ResourceId, relation: &str) -> Result<String, StoreError> {
        let state = self.core.resource_now(other).await?;
        let remedy = match state.as_deref().filter(|state| state.deletion.is_none()) {
            Some(state) if state.quarantine.is_some() => {
                "; it is in quarantine: release it, or delete it by name"
            }
            Some(state) if state.deletion_protection => {
                "; it is protected: apply it with `deletion_protection: false`, then delete it"
            }
            _ => "",
        };
        let name = state.map_or_else(|| other.to_string(), |state| state.id().reference().to_string());
        Ok(format!("Waits until {name}, which {relation}, is gone{remedy}."))
    }

    async fn why_degraded(&self, state: &ResourceState) -> Result<String, StoreError> {
        if state.rollup_failed {
            return Ok(format!("Its rollup failed: {}", failure(state)));
        }
        if !state.healthy {
            let reason = state.conditions().into_iter().find(|condition| condition.condition_type == "Ready");
            let message = reason.map(|condition| condition.message).unwrap_or_default();
            return Ok(format!("It is synced but not healthy: {message}"));
        }
        let summary = self.core.store.children_summary(state.id().id).await?;
        match summary.impaired.or(state.culprit) {
            Some(child) => Ok(format!("Degraded by {}.", self.describe_child(child).await)),
            None if !state.conflicts.is_empty() => self.why_conflicted(state).await,
            None => Ok("A child is impaired.".to_owned()),
        }
    }

    /// An upstream that is only a name so far.
    async fn why_unbound(&self, state: &ResourceState, name: &ResourceRef) -> Result<String, StoreError> {
        let Some(bearer) = self.core.bearers(std::slice::from_ref(name)).await?.remove(name) else {
            return Ok(format!("Waits for {name}, which does not exist."));
        };
        if bearer.deletion.is_some() {
            return Ok(format!("Waits for {name} to be made anew: it is being deleted."));
        }
        if bearer.id().owner().is_some() {
            return Ok(format!("Waits for a top-level {name}: the one that exists is another's child."));
        }
        let own = state.id().reference();
        Ok(match self.core.walk_upstreams(name, &own, &HashMap::new()).await? {
            Walk::Cycle(path) => {
                format!("Waits for {name}, which would wait for it in turn: {}.", arrows(&path))
            }
            Walk::Acyclic(_) | Walk::TooLarge => format!("Waits for {name}, which was just made."),
        })
    }

    /// Whoever holds the name of a child, by name.
    async fn why_conflicted(&self, state: &ResourceState) -> Result<String, StoreError> {
        let Some(conflict) = state.conflicts.first() else { return Ok(String::new()) };
        let holder = match conflict.owner {
            Some(owner) => format!("{} holds it", self.call_name(owner).await),
            None => "a user declared it".to_owned(),
        };
        Ok(format!("It does not get its child {}: {holder}.", conflict.child))
    }

    async fn why_moving(&self, state: &ResourceState) -> Result<String, StoreError> {
        if state.behind.is_some() {
            let name = state.id().reference();
            return Ok(format!("Waits until the {name} before it, which is being deleted, is gone."));
        }
        if state.claim.is_some() {
            return Ok(running(state));
        }
        if let Some(pass) = &state.pass {
            return Ok(format!("Writes its {} children.", pass.children));
        }
        if state.work_is_behind() || state.composition_is_behind() {
            if let Some(upstream) = self.unready_upstream(state).await? {
                return Ok(upstream);
            }
            if let Some(owner) = self.owner_in_pass(state).await? {
                return Ok(owner);
            }
        }
        if let Some(missing) = state.unresolved.first() {
            return Ok(format!(
                "Waits for {} of {} (for {}): {}.",
                missing.source_field, missing.upstream, missing.field, missing.reason
            ));
        }
        if let Some(name) = &state.provider_config_ref
            && self.core.registry.config(name).is_none()
        {
            return Ok(format!("Waits for provider config {name}, which does not exist."));
        }
        if state.retry_at.is_some() {
            return Ok(retrying(state));
        }
        if state.due().is_some() {
            return self.why_queued(state).await;
        }
        if state.shape.composes && state.subtree == Standing::Open {
            return self.why_open(state).await;
        }
        if state.gate != Gate::Open {
            return Ok("Waits for its upstreams to be evaluated.".to_owned());
        }
        Ok("Its last change is being carried on.".to_owned())
    }

    /// A failed descendant is named first, else one that still moves.
    async fn why_open(&self, state: &ResourceState) -> Result<String, StoreError> {
        let summary = self.core.store.children_summary(state.id().id).await?;
        match (summary.impaired, summary.open) {
            (Some(child), _) | (None, Some(child)) => {
                Ok(format!("Waits for {}.", self.describe_child(child).await))
            }
            (None, None) => Ok("Its children are settled; the next evaluation is under way.".to_owned()),
        }
    }

    async fn describe_child(&self, child: ResourceId) -> String {
        match self.by_id(child).await {
            Ok(Some(state)) => {
                let phase = state.phase();
                let reference = state.id().reference();
                let waits_by_itself = self.own_wait(&state).await;
                match (&state.last_failure, waits_by_itself) {
                    (Some(failure), _) => format!("{reference} ({phase}: {})", failure.message),
                    (None, Some(sentence)) => format!("{reference} ({phase}: {sentence})"),
                    (None, None) => format!("{reference} ({phase})"),
                }
            }
            _ => child.to_string(),
        }
    }

    /// What a child itself waits for, without going further down.
    async fn own_wait(&self, state: &ResourceState) -> Option<String> {
        if state.shape.composes {
            return None;
        }
        let sentence = match state.phase() {
            Phase::Deleting => self.why_deleting(state).await.ok()?,
            _ => Box::pin(self.why_moving(state)).await.ok()?,
        };
        Some(sentence.trim_end_matches('.').to_owned())
    }

    /// The upstream this resource waits for: the first of its own that is not Ready.
    async fn unready_upstream(&self, state: &ResourceState) -> Result<Option<String>, StoreError> {
        let ids: Vec<ResourceId> = state.edges.iter().map(|edge| edge.upstream).collect();
        let upstreams = self.core.resources_now(&ids).await?;
        for edge in &state.edges {
            if edge.conflicted {
                return Ok(Some(format!(
                    "Blocked by {}, whose name somebody else holds.",
                    edge.upstream_ref
                )));
            }
            if edge.unbound {
                return self.why_unbound(state, &edge.upstream_ref).await.map(Some);
            }
            let Some(upstream) = upstreams.get(&edge.upstream) else {
                return Ok(Some(format!("Waits for {}, which does not exist.", edge.upstream_ref)));
            };
            let phase = upstream.phase();
            if phase != Phase::Ready {
                let verb = if state.gate == Gate::Blocked { "Blocked by" } else { "Waits for" };
                return Ok(Some(format!("{verb} {}, which is {phase}.", edge.upstream_ref)));
            }
        }
        Ok(None)
    }

    async fn owner_in_pass(&self, state: &ResourceState) -> Result<Option<String>, StoreError> {
        let ancestors = self.core.resources_now(&state.id().ancestors).await?;
        let busy = ancestors.values().find(|owner| owner.pass.is_some());
        Ok(busy.map(|owner| format!("Waits until {} has written all its children.", owner.id().reference())))
    }

    /// It could be claimed: what the queue waits for is a worker, or a place under the cap.
    async fn why_queued(&self, state: &ResourceState) -> Result<String, StoreError> {
        let kind = state.task_kind_ref();
        let Some(entry) = self.core.registry.kind(&kind) else {
            return Ok(format!("Waits for kind {kind}, which is not published."));
        };
        if !self.core.is_served(&kind).await? {
            let provider = entry.manifest.provider();
            return Ok(if provider == kind.kind {
                format!("Waits for a worker: none that is connected serves {kind}.")
            } else {
                format!("Waits for a worker: none that is connected hosts provider {provider} for {kind}.")
            });
        }
        Ok(match entry.manifest.knobs.max_inflight {
            Some(cap) if cap > 0 => format!("Queued for a worker; at most {cap} of {kind} run at once."),
            _ => "Queued for a free worker.".to_owned(),
        })
    }
}

fn running(state: &ResourceState) -> String {
    let Some(claim) = &state.claim else { return String::new() };
    let task = match claim.reaction {
        Reaction::Work => "reconciling it",
        Reaction::Compose => "composing it",
        Reaction::Rollup => "rolling it up",
        Reaction::Teardown => "tearing it down",
        Reaction::Observe => "looking at it",
    };
    let attempt =
        if state.attempts > 0 { format!(", attempt {}", state.attempts + 1) } else { String::new() };
    format!("Worker {} is {task} since {}{attempt}.", claim.worker, claim.claimed_at)
}

fn retrying(state: &ResourceState) -> String {
    let when = state.retry_at.map_or_else(|| "as soon as it is claimed".to_owned(), |at| format!("at {at}"));
    match &state.last_failure {
        Some(failure) => format!("Attempt {} failed: {}; next {when}.", failure.attempt, failure.message),
        None => format!("Asked to be looked at again {when}."),
    }
}

fn failure(state: &ResourceState) -> &str {
    state.last_failure.as_ref().map_or("no message was given", |failure| &failure.message)
}
