//! Folding events into the state. No decision is taken here; whatever an event says has happened.

use super::{
    AttemptFailed, Composed, CompositionAccepted, Configured, Created, Deletion, DroppedChild, Edge, Failure,
    Gate, Identity, Input, Observed, Phase, Quarantine, Reaction, ResourceEvent, ResourceState,
    ResyncRequested, Standing, SubtreeChanged, Unresolved, UpstreamsEvaluated, Worked,
};
use crate::ids::{Generation, ResourceId, ResourceRef, Revision, Timestamp};
use serde_json::Value;
use std::sync::Arc;

impl ResourceState {
    pub(super) fn fold(&mut self, event: ResourceEvent) {
        let before = Outward::of(self);
        self.sequence += 1;
        let at = event.at().unwrap_or(self.updated_at);
        let subtree_digest = self.subtree_digest.clone();
        self.fold_fact(event);
        self.advance_sync();
        self.updated_at = at;
        self.note_transitions(&before, subtree_digest.as_ref(), at);
    }

    fn fold_fact(&mut self, event: ResourceEvent) {
        match event {
            ResourceEvent::Created(created) => self.created(created),
            ResourceEvent::Configured(configured) => self.configured(configured),
            ResourceEvent::UpstreamsEvaluated(evaluated) => self.upstreams_evaluated(evaluated),
            ResourceEvent::InputsRejected { generation, message, at } => {
                self.failed_gen = Some(generation);
                self.last_failure =
                    Some(Failure { reaction: Reaction::Work, message, terminal: true, attempt: 0, at });
            }
            ResourceEvent::Claimed(claim) => {
                self.epoch = claim.epoch;
                self.claimed_version = Some(self.kind_version);
                self.retry_at = None;
                self.claim = Some(claim);
            }
            ResourceEvent::Worked(worked) => self.worked(worked),
            ResourceEvent::Progressed { status, requeue_at, .. } => {
                self.claim = None;
                self.retry_at = Some(requeue_at);
                replace_slot(&mut self.status_own, status);
            }
            ResourceEvent::AttemptFailed(failed) => self.attempt_failed(failed),
            ResourceEvent::ClaimReleased { .. } => self.claim = None,
            ResourceEvent::ClaimMoved { session, .. } => {
                if let Some(claim) = &mut self.claim {
                    claim.session = session;
                }
            }
            ResourceEvent::OutcomeFenced { .. } => {}
            ResourceEvent::CompositionAccepted(accepted) => self.composition_accepted(accepted),
            ResourceEvent::Composed(composed) => self.composed_pass(composed),
            ResourceEvent::CompositionAbandoned { .. } => {
                self.pass = None;
                self.compose_round = self.compose_round.next();
            }
            ResourceEvent::SubtreeChanged(changed) => self.subtree_changed(changed),
            ResourceEvent::RolledUp { digest, status, conditions, .. } => {
                self.claim = None;
                self.attempts = 0;
                self.last_failure = None;
                self.rollup_failed = false;
                // The digest moved while the rollup ran: what it saw is history, another one is owed.
                self.rollup_owed = self.subtree_digest.as_ref().is_some_and(|current| *current != digest);
                self.rollup_quiet = self.rollup_owed && self.rollup_quiet;
                self.rolled_digest = Some(digest);
                replace_slot(&mut self.status_rollup, status);
                if let Some(conditions) = conditions {
                    self.conditions_rollup = conditions;
                }
            }
            ResourceEvent::Propagated {} => self.propagation_owed = false,
            ResourceEvent::RecomposeRequested { digest, .. } => {
                self.compose_round = self.compose_round.next();
                self.same_input = false;
                if digest.is_some() {
                    self.recomposed_digest = digest;
                }
            }
            ResourceEvent::Dropped { former_dependents, kept, kept_until, .. } => {
                self.dropped = Some(DroppedChild { former_dependents, kept, kept_until });
            }
            ResourceEvent::GraceEnded { .. } => {
                if let Some(mark) = &mut self.dropped {
                    mark.kept = false;
                    mark.kept_until = None;
                }
            }
            ResourceEvent::Readopted { .. } => self.dropped = None,
            ResourceEvent::DeletionRequested { at } => {
                self.deletion = Some(Deletion { requested_at: at, open: false });
                self.pass = None;
                self.retry_at = None;
                self.attempts = 0;
                self.last_failure = None;
            }
            ResourceEvent::TeardownOpened {} => {
                if let Some(deletion) = &mut self.deletion {
                    deletion.open = true;
                }
            }
            ResourceEvent::FinalizerStripped { finalizer, .. } => {
                self.claim = None;
                self.attempts = 0;
                self.last_failure = None;
                self.finalizers.retain(|held| *held != finalizer);
            }
            ResourceEvent::Deleted(_) => {
                self.claim = None;
                self.deleted = true;
            }
            ResourceEvent::Quarantined { reason, at } => {
                self.quarantine = Some(Quarantine { reason, since: at });
            }
            ResourceEvent::Released { .. } => self.quarantine = None,
            ResourceEvent::ResyncRequested(requested) => self.resync_requested(&requested),
            ResourceEvent::Observed(observed) => self.observed(observed),
            ResourceEvent::PrunePendingChanged { pending, .. } => self.prune_pending = pending,
            ResourceEvent::PruneConfirmed { digest, .. } => {
                self.prune_confirmed = Some(digest);
                self.compose_round = self.compose_round.next();
                self.same_input = false;
            }
            ResourceEvent::UpstreamsBound { bound, .. } => self.upstreams_bound(&bound),
            ResourceEvent::NameTaken { .. } => self.behind = None,
            ResourceEvent::Abandoned { .. } => {
                self.claim = None;
                self.finalizers.clear();
            }
        }
    }

    fn upstreams_bound(&mut self, bound: &[(ResourceRef, ResourceId)]) {
        for edge in self.edges.iter_mut().filter(|edge| edge.unbound) {
            if let Some((_, id)) = bound.iter().find(|(name, _)| *name == edge.upstream_ref) {
                edge.upstream = *id;
                edge.unbound = false;
            }
        }
        self.unresolved = unevaluated(&self.edges, &self.inputs);
        self.gate = Gate::Waiting;
    }

    fn resync_requested(&mut self, requested: &ResyncRequested) {
        self.resync = requested.number;
        // Whatever is due need not wait for its backoff any more.
        self.retry_at = None;
        if requested.retry {
            self.round = self.round.next();
            self.failed_gen = None;
            self.attempts = 0;
            self.last_failure = None;
            if self.rollup_failed {
                self.rollup_failed = false;
                self.rollup_owed = true;
                self.rollup_quiet = false;
            }
        }
        if requested.recompose || requested.retry {
            self.compose_round = self.compose_round.next();
            self.same_input = !requested.retry;
        }
    }

    fn observed(&mut self, observed: Observed) {
        self.claim = None;
        self.resynced = observed.number;
        self.attempts = 0;
        self.retry_at = None;
        self.last_failure = None;
        replace_slot(&mut self.status_own, observed.status);
        if let Some(conditions) = observed.conditions {
            self.conditions_own = conditions;
        }
        self.healthy = observed.healthy;
    }

    fn created(&mut self, created: Created) {
        let gate = if created.edges.is_empty() { Gate::Open } else { Gate::Waiting };
        *self = Self {
            identity: Some(Arc::new(Identity {
                id: created.id,
                kind: created.kind,
                name: created.name,
                ancestors: created.ancestors,
            })),
            kind_version: created.kind_version,
            finalizers: created.shape.finalizers.clone(),
            subtree: if created.shape.composes { Standing::Open } else { Standing::AllReady },
            rollup_owed: created.shape.rolls_up,
            shape: created.shape,
            spec: created.spec,
            labels: created.labels,
            provider_config_ref: created.provider_config_ref,
            deletion_protection: created.deletion_protection,
            edges: created.edges,
            gate,
            behind: created.behind,
            revision: Revision(1),
            generation: Generation(1),
            healthy: true,
            created_at: created.at,
            synced_since: created.at,
            ready_since: created.at,
            sequence: self.sequence,
            ..Self::default()
        };
    }

    fn configured(&mut self, configured: Configured) {
        self.revision = self.revision.next();
        if let Some(version) = configured.kind_version {
            self.kind_version = version;
        }
        if let Some(shape) = configured.shape {
            self.finalizers.clone_from(&shape.finalizers);
            self.shape = shape;
        }
        if let Some(spec) = configured.spec {
            self.spec = spec;
        }
        if let Some(reference) = configured.provider_config_ref {
            self.provider_config_ref = reference;
        }
        if let Some(protection) = configured.deletion_protection {
            self.deletion_protection = protection;
        }
        if let Some(edges) = configured.edges {
            self.edges = edges;
            self.unresolved = unevaluated(&self.edges, &self.inputs);
            self.gate = if self.edges.is_empty() { Gate::Open } else { Gate::Waiting };
        }
        let labels_changed = configured.labels.is_some();
        if let Some(labels) = configured.labels {
            self.labels = labels;
        }
        self.same_input = false;
        self.unstable_passes = 0;
        if configured.generation > self.generation {
            self.raise_generation(configured.generation);
            if !self.edges.is_empty() {
                self.gate = Gate::Waiting;
            }
        } else if labels_changed && self.shape.composes {
            self.compose_round = self.compose_round.next();
        }
    }

    fn raise_generation(&mut self, generation: Generation) {
        self.generation = generation;
        self.same_input = false;
        self.attempts = 0;
        self.retry_at = None;
        self.last_failure = None;
        if self.shape.rolls_up {
            self.rollup_owed = true;
            self.rollup_quiet = false;
        }
    }

    fn upstreams_evaluated(&mut self, evaluated: UpstreamsEvaluated) {
        self.inputs.retain(|input| !evaluated.removed.contains(&input.field));
        for input in evaluated.inputs {
            match self.inputs.iter_mut().find(|held| held.field == input.field) {
                Some(held) => *held = input,
                None => self.inputs.push(input),
            }
        }
        self.unresolved = evaluated.unresolved;
        if evaluated.generation > self.generation {
            self.raise_generation(evaluated.generation);
        }
        self.gate = evaluated.gate;
    }

    fn worked(&mut self, worked: Worked) {
        self.claim = None;
        self.worked = Some((worked.generation, worked.round));
        replace_slot(&mut self.status_own, worked.status);
        if let Some(conditions) = worked.conditions {
            self.conditions_own = conditions;
        }
        self.healthy = worked.healthy;
        if worked.generation == self.generation {
            self.attempts = 0;
            self.retry_at = None;
            self.last_failure = None;
        }
    }

    fn attempt_failed(&mut self, failed: AttemptFailed) {
        self.claim = None;
        replace_slot(&mut self.status_own, failed.status);
        let own = matches!(failed.reaction, Reaction::Work | Reaction::Compose);
        // A failure of an older generation says nothing about the live one: it starts with a clean counter.
        if own && failed.generation != self.generation {
            return;
        }
        self.attempts = if failed.terminal { 0 } else { failed.attempt };
        self.retry_at = failed.retry_at;
        self.last_failure = Some(Failure {
            reaction: failed.reaction,
            message: failed.message,
            terminal: failed.terminal,
            attempt: failed.attempt,
            at: failed.at,
        });
        if failed.terminal {
            match failed.reaction {
                Reaction::Work | Reaction::Compose => self.failed_gen = Some(failed.generation),
                Reaction::Rollup => {
                    self.rollup_failed = true;
                    self.rollup_owed = false;
                    self.rollup_quiet = false;
                }
                Reaction::Observe => self.resynced = self.resync,
                Reaction::Teardown => {}
            }
        }
    }

    fn composition_accepted(&mut self, accepted: CompositionAccepted) {
        self.claim = None;
        self.attempts = 0;
        self.retry_at = None;
        self.last_failure = None;
        self.pass = Some(accepted.pass);
        replace_slot(&mut self.status_compose, accepted.status);
        if let Some(conditions) = accepted.conditions {
            self.conditions_compose = conditions;
        }
    }

    fn composed_pass(&mut self, composed: Composed) {
        if let Some(pass) = self.pass.take() {
            self.composed = Some((pass.generation, pass.compose_round));
        }
        let changes = composed.created + composed.changed + composed.dropped > 0;
        if !(self.same_input && changes) {
            self.unstable_passes = 0;
            self.unstable_child = None;
        } else {
            self.unstable_passes += 1;
            self.unstable_child = composed.sample.or_else(|| self.unstable_child.take());
        }
        self.same_input = false;
        // A confirmation is for the pass that follows it; what it did not cover waits for another.
        self.prune_confirmed = None;
        self.prune_held = composed.held;
        self.conflicts = composed.conflicts;
        self.configs = composed.configs;
    }

    fn subtree_changed(&mut self, changed: SubtreeChanged) {
        let was = self.subtree;
        self.subtree = changed.subtree;
        self.culprit = changed.culprit;
        if changed.subtree == Standing::Open {
            self.rollup_quiet = false;
            return;
        }
        // A demotion says only how bad it got; the digest comes with the evaluation that follows.
        if changed.digest.is_none() {
            self.rollup_quiet = false;
            return;
        }
        let quiet = was == Standing::AllReady && changed.subtree == Standing::AllReady && self.is_synced();
        if self.shape.rolls_up
            && (changed.digest != self.rolled_digest || (self.rollup_failed && was != changed.subtree))
        {
            self.rollup_quiet = quiet && (!self.rollup_owed || self.rollup_quiet);
            self.rollup_owed = true;
        }
        self.subtree_digest = changed.digest;
    }

    /// The join barrier: everything the live generation asks for is done.
    fn advance_sync(&mut self) {
        let joined = self.identity.is_some()
            && self.deletion.is_none()
            && self.behind.is_none()
            && self.pass.is_none()
            && !self.has_failed()
            && !self.work_is_behind()
            && !self.composition_is_behind()
            && self.subtree != Standing::Open
            && !(self.shape.rolls_up && self.rollup_owed)
            && self.unresolved.is_empty();
        if joined {
            self.synced_gen = self.generation;
        }
    }

    fn note_transitions(&mut self, before: &Outward, subtree_digest: Option<&String>, at: Timestamp) {
        let after = Outward::of(self);
        if before.synced != after.synced {
            self.synced_since = at;
        }
        if (before.phase == Some(Phase::Ready)) != (after.phase == Some(Phase::Ready)) {
            self.ready_since = at;
        }
        if self.due().is_some() && !before.due {
            self.due_since = at;
        }
        let status_changed = before.status != after.status;
        if status_changed && before.ever_synced {
            self.propagation_owed = true;
        }
        if before.phase != after.phase || status_changed || self.subtree_digest.as_ref() != subtree_digest {
            self.outward = self.sequence;
        }
    }
}

/// What others can see of a resource, for noticing changes.
struct Outward {
    phase: Option<Phase>,
    synced: bool,
    ever_synced: bool,
    due: bool,
    status: [Option<Arc<Value>>; 3],
}

impl Outward {
    fn of(state: &ResourceState) -> Self {
        Self {
            phase: state.identity.is_some().then(|| state.phase()),
            synced: state.is_synced(),
            ever_synced: state.synced_gen > Generation(0),
            due: state.due().is_some(),
            status: [state.status_own.clone(), state.status_compose.clone(), state.status_rollup.clone()],
        }
    }
}

/// A part that an outcome leaves out keeps its slot.
fn replace_slot(slot: &mut Option<Arc<Value>>, part: Option<Arc<Value>>) {
    if part.is_some() {
        *slot = part;
    }
}

/// Flows that no input answers yet. They hold the resource open until the next evaluation, so that an owner
/// cannot settle between the new edge and its first value.
fn unevaluated(edges: &[Edge], inputs: &[Input]) -> Vec<Unresolved> {
    let mut pending = Vec::new();
    for edge in edges {
        for flow in &edge.values {
            let answered = inputs.iter().any(|input| {
                input.field == flow.dependent_field
                    && input.source == edge.upstream
                    && input.source_field == flow.source_field
            });
            if !answered {
                pending.push(Unresolved {
                    field: flow.dependent_field.clone(),
                    upstream: edge.upstream_ref.clone(),
                    source_field: flow.source_field.clone(),
                    reason: "not evaluated yet".to_owned(),
                });
            }
        }
    }
    pending
}
