//! From events to wake-ups: who must look again after which fact.

use crate::dispatch::Fence;
use crate::dispatching::Dispatcher;
use crate::engine::Core;
use crate::evaluate::{Evaluator, Touch};
use crate::timers::Timers;
use converge_domain::provider_config::ProviderConfigEvent;
use converge_domain::resource::{Gate, ResourceEvent, Standing};
use converge_domain::{AggregateType, AnyEvent, Position, ResourceId, ResourceRef};
use converge_event_store::StoredEvent;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Everything that can be woken.
pub(crate) struct Wakers {
    pub core: Arc<Core>,
    pub evaluator: Evaluator,
    pub dispatcher: Arc<Dispatcher>,
    pub timers: Timers,
}

/// Follows the log from `start` and wakes.
pub(crate) fn start(wakers: Wakers, start: Position, tracker: &TaskTracker, stop: CancellationToken) {
    let mut follower = wakers.core.log.tail().follow(start);
    tracker.spawn(async move {
        loop {
            let next = tokio::select! {
                () = stop.cancelled() => return,
                next = follower.next() => next,
            };
            match next {
                Ok(events) => wakers.wake(&events).await,
                Err(error) => {
                    // The follower keeps its place: nothing is skipped, the next call reads on from there.
                    tracing::warn!(%error, "cannot follow the log");
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(Duration::from_millis(200)) => {}
                    }
                }
            }
        }
    });
}

impl Wakers {
    async fn wake(&self, events: &[StoredEvent]) {
        let mut touches = Vec::new();
        let mut claimable = Vec::new();
        let mut everything_claimable = false;
        for stored in events {
            match &stored.event {
                AnyEvent::Resource(event) => {
                    let id = ResourceId(stored.aggregate_id.0);
                    touch(id, event, &mut touches);
                    touches.extend(self.who_waits_for(event));
                    if self.note_time(id, event) {
                        claimable.push(id);
                    }
                    self.inform_brokers(id, event);
                    everything_claimable |= matches!(
                        event,
                        ResourceEvent::Composed(_) | ResourceEvent::CompositionAbandoned { .. }
                    );
                    if let ResourceEvent::Deleted(deleted) = event {
                        self.evaluator.collect_configs_of(id);
                        claimable.push(id);
                        claimable.extend_from_slice(&deleted.upstreams);
                    }
                }
                AnyEvent::Kind(_) => {
                    self.reload(AggregateType::Kind).await;
                    everything_claimable = true;
                }
                AnyEvent::ProviderConfig(event) => {
                    if let ProviderConfigEvent::Deleted { .. } = event {
                        let known = self.core.registry.config_name(stored.aggregate_id);
                        let name = known.map(|name| ResourceRef::new("providerconfig", name));
                        touches.extend(name.map(|name| (name.name_id(), Touch::DEPENDENTS)));
                    }
                    self.reload(AggregateType::ProviderConfig).await;
                    self.dispatcher.configs_changed();
                    everything_claimable = true;
                }
                AnyEvent::ReactorBinding(_) => {}
            }
        }
        if self.core.runs_control() {
            self.evaluator.touch(touches);
        }
        self.dispatcher.may_claim(&claimable).await;
        if everything_claimable {
            self.dispatcher.may_claim_all();
        }
    }

    /// Those who wait for the name that was taken or freed by `event`. (A composer's children take names that nobody may wait for.)
    fn who_waits_for(&self, event: &ResourceEvent) -> Option<(ResourceId, Touch)> {
        // Seen in the order of the log, so whoever waited before this event has been noticed.
        if event_awaits_names(event) {
            self.core.await_names();
        }
        if !self.core.names_are_awaited() {
            return None;
        }
        let name = match event {
            ResourceEvent::Created(created) if created.pass_id.is_none() => {
                ResourceRef::new(&created.kind, &created.name)
            }
            ResourceEvent::Deleted(deleted) => deleted.reference.clone()?,
            _ => return None,
        };
        Some((name.name_id(), Touch::DEPENDENTS))
    }

    fn inform_brokers(&self, id: ResourceId, event: &ResourceEvent) {
        match event {
            ResourceEvent::Abandoned { .. } => self.dispatcher.cancel_running(id),
            ResourceEvent::DeletionRequested { .. } => {
                self.dispatcher.forget_kind(id);
                self.dispatcher.cancel_running(id);
            }
            ResourceEvent::Configured(configured) if configured.kind_version.is_some() => {
                self.dispatcher.forget_kind(id);
            }
            ResourceEvent::ClaimReleased { epoch, claim_id, reason, .. } => {
                self.dispatcher.claim_ended(Fence { id, epoch: *epoch, claim_id: *claim_id }, reason);
            }
            _ => {}
        }
    }

    async fn reload(&self, aggregate_type: AggregateType) {
        while let Err(error) = self.core.registry.reload(self.core.store.as_ref(), aggregate_type).await {
            tracing::warn!(%error, "cannot reload the registry");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Sets timers, and says whether the resource, or another of its kind, may be claimable now.
    fn note_time(&self, id: ResourceId, event: &ResourceEvent) -> bool {
        match event {
            ResourceEvent::AttemptFailed(failed) => {
                if let Some(retry_at) = failed.retry_at {
                    self.timers.at(retry_at, id);
                }
                true
            }
            ResourceEvent::Progressed { requeue_at, .. } => {
                self.timers.at(*requeue_at, id);
                true
            }
            ResourceEvent::Dropped { kept_until: Some(until), .. } => {
                self.timers.at(*until, id);
                false
            }
            // Children of a pass cannot be claimed before `Composed`, which wakes every kind at once.
            ResourceEvent::Created(created) => created.pass_id.is_none(),
            ResourceEvent::Configured(configured) => configured.pass_id.is_none(),
            // The end of a claim frees a place under the kind's cap; the rest may have made work due.
            ResourceEvent::UpstreamsEvaluated(_)
            | ResourceEvent::Worked(_)
            | ResourceEvent::ClaimReleased { .. }
            | ResourceEvent::RolledUp { .. }
            | ResourceEvent::CompositionAccepted(_)
            | ResourceEvent::CompositionAbandoned { .. }
            | ResourceEvent::RecomposeRequested { .. }
            | ResourceEvent::SubtreeChanged(_)
            | ResourceEvent::TeardownOpened {}
            | ResourceEvent::FinalizerStripped { .. }
            | ResourceEvent::Released { .. }
            | ResourceEvent::NameTaken { .. }
            | ResourceEvent::ResyncRequested(_)
            | ResourceEvent::Observed(_)
            | ResourceEvent::PruneConfirmed { .. }
            | ResourceEvent::Abandoned { .. }
            | ResourceEvent::Readopted { .. } => true,
            _ => false,
        }
    }
}

/// Whether somebody waits for a name from this event on.
fn event_awaits_names(event: &ResourceEvent) -> bool {
    match event {
        ResourceEvent::Created(created) => {
            created.behind.is_some() || created.edges.iter().any(|edge| edge.unbound)
        }
        ResourceEvent::Configured(configured) => configured.edges.iter().flatten().any(|edge| edge.unbound),
        ResourceEvent::Composed(composed) => !composed.conflicts.is_empty(),
        _ => false,
    }
}

/// Who must look again: the resource itself, those that wait on it, its owner.
fn touch(id: ResourceId, event: &ResourceEvent, touches: &mut Vec<(ResourceId, Touch)>) {
    match event {
        ResourceEvent::Created(created) if created.edges.is_empty() && created.behind.is_none() => {}
        ResourceEvent::Created(_) | ResourceEvent::CompositionAccepted(_) => touches.push((id, Touch::SELF)),
        ResourceEvent::Released { .. } => touches.push((id, Touch::FREED)),
        ResourceEvent::Configured(configured) => {
            let lifted = configured.deletion_protection == Some(false);
            touches.push((id, if lifted { Touch::FREED } else { Touch::SELF }));
            touches.extend(configured.released.iter().map(|upstream| (*upstream, Touch::SELF)));
        }
        // New values behind an open gate made the node due: it is claimed next, and nobody waits for that.
        ResourceEvent::UpstreamsEvaluated(evaluated)
            if evaluated.gate == Gate::Open && !evaluated.inputs.is_empty() => {}
        ResourceEvent::SubtreeChanged(changed) if changed.subtree == Standing::Open => {}
        ResourceEvent::DeletionRequested { .. } => touches.push((id, Touch::DELETION)),
        // The end of a claim, whatever it was, may leave the node waiting on others, or let its teardown open.
        ResourceEvent::Composed(_)
        | ResourceEvent::ClaimReleased { .. }
        | ResourceEvent::Progressed { .. }
        | ResourceEvent::CompositionAbandoned { .. }
        | ResourceEvent::Worked(_)
        | ResourceEvent::AttemptFailed(_)
        | ResourceEvent::UpstreamsEvaluated(_)
        | ResourceEvent::InputsRejected { .. }
        | ResourceEvent::SubtreeChanged(_)
        | ResourceEvent::RolledUp { .. }
        | ResourceEvent::Propagated {}
        | ResourceEvent::Dropped { .. }
        | ResourceEvent::GraceEnded { .. }
        | ResourceEvent::UpstreamsBound { .. }
        | ResourceEvent::NameTaken { .. }
        | ResourceEvent::Quarantined { .. }
        | ResourceEvent::ResyncRequested(_)
        | ResourceEvent::Observed(_)
        | ResourceEvent::Readopted { .. } => touches.push((id, Touch::AROUND)),
        ResourceEvent::Deleted(deleted) => {
            touches.push((id, Touch::DEPENDENTS));
            touches.extend(deleted.upstreams.iter().map(|upstream| (*upstream, Touch::SELF)));
            if let Some(owner) = deleted.owner {
                touches.push((owner, Touch::SELF));
            }
        }
        ResourceEvent::Claimed(_)
        | ResourceEvent::ClaimMoved { .. }
        | ResourceEvent::OutcomeFenced { .. }
        | ResourceEvent::RecomposeRequested { .. }
        | ResourceEvent::PrunePendingChanged { .. }
        | ResourceEvent::PruneConfirmed { .. }
        | ResourceEvent::Abandoned { .. }
        | ResourceEvent::TeardownOpened {}
        | ResourceEvent::FinalizerStripped { .. } => {}
    }
}
