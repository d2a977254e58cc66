//! The invariants, checked over the whole stream by a fold of their own beside the domain's.

use converge_domain::resource::{Claim, Gate, Phase, Reaction, ResourceEvent, ResourceState};
use converge_domain::{AggregateId, AnyEvent, Generation, Position, ResourceId, Round};
use converge_event_store::StoredEvent;
use cqrs_es::Aggregate;
use std::collections::{HashMap, HashSet};

#[derive(Default)]
struct Proof {
    live: HashMap<ResourceId, ResourceState>,
    gone: HashSet<ResourceId>,
    sequences: HashMap<AggregateId, u64>,
    claims: HashMap<ResourceId, Claim>,
    epochs: HashMap<ResourceId, u64>,
    done: HashSet<(ResourceId, String)>,
    names: HashMap<(String, String), ResourceId>,
}

/// The first broken invariant, if one is.
pub fn check(events: &[StoredEvent]) -> Result<(), String> {
    let mut proof = Proof::default();
    for (at, stored) in events.iter().enumerate() {
        proof.step(at as u64 + 1, stored).map_err(|broken| {
            let event = format!("{:?}", stored.event);
            format!("at {}: {broken} ({})", stored.position, event.chars().take(300).collect::<String>())
        })?;
    }
    Ok(())
}

fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

impl Proof {
    fn step(&mut self, at: u64, stored: &StoredEvent) -> Result<(), String> {
        must(stored.position == Position(at), || format!("positions are contiguous, {at} was expected"))?;
        let sequence = self.sequences.entry(stored.aggregate_id).or_default();
        *sequence += 1;
        must(stored.sequence.0 == *sequence, || "sequences are contiguous".into())?;
        let AnyEvent::Resource(event) = &stored.event else { return Ok(()) };
        let id = ResourceId(stored.aggregate_id.0);
        must(!self.gone.contains(&id), || "nothing follows the end of a stream".into())?;
        self.before(id, event)?;
        self.fence(id, event)?;
        self.once(id, event)?;
        let state = self.live.entry(id).or_default();
        state.apply(event.clone());
        must(state.synced_gen <= state.generation, || "synced_gen <= generation".into())?;
        if state.deleted {
            let identity = state.id().clone();
            // One that still waited for its name never bore it.
            let name = (identity.kind, identity.name);
            if self.names.get(&name) == Some(&id) {
                self.names.remove(&name);
            }
            self.live.remove(&id);
            self.gone.insert(id);
        }
        self.no_ready_over_unready(id)
    }

    /// What must hold of the world before such an event.
    fn before(&mut self, id: ResourceId, event: &ResourceEvent) -> Result<(), String> {
        match event {
            ResourceEvent::Created(created) => {
                if created.behind.is_none() {
                    self.take_name(id, &created.kind, &created.name)?;
                }
                // Further up a deletion may have been asked for: it reaches this owner, and with it the new child, later.
                if let Some(owner) = created.ancestors.first() {
                    let quiet = self.live.get(owner).is_some_and(|state| state.deletion.is_none());
                    must(quiet, || "nothing is made under what is going away".into())?;
                }
                Ok(())
            }
            ResourceEvent::Claimed(claim) if claim.reaction == Reaction::Teardown => self.torn_down_last(id),
            ResourceEvent::Claimed(claim) => self.may_run(id, claim),
            ResourceEvent::TeardownOpened {} | ResourceEvent::Deleted(_) => self.torn_down_last(id),
            ResourceEvent::NameTaken { .. } => {
                let identity = self.live[&id].id().clone();
                self.take_name(id, &identity.kind, &identity.name)
            }
            _ => Ok(()),
        }
    }

    fn take_name(&mut self, id: ResourceId, kind: &str, name: &str) -> Result<(), String> {
        let taken = self.names.insert((kind.to_owned(), name.to_owned()), id);
        must(taken.is_none(), || "a name has one live holder".into())
    }

    fn may_run(&self, id: ResourceId, claim: &Claim) -> Result<(), String> {
        let state = &self.live[&id];
        let above = state.id().ancestors.iter().filter_map(|ancestor| self.live.get(ancestor));
        for node in above.chain([state]) {
            must(node.deletion.is_none(), || "nothing in a tree that is going away is claimed".into())?;
        }
        for ancestor in &state.id().ancestors {
            let pass = self.live.get(ancestor).is_some_and(|state| state.pass.is_some());
            must(!pass, || "nothing under an unfinished pass is claimed".into())?;
        }
        must(state.quarantine.is_none(), || "nothing that is set aside is claimed".into())?;
        must(state.behind.is_none(), || "nothing that waits for its name is claimed".into())?;
        if matches!(claim.reaction, Reaction::Rollup | Reaction::Observe) {
            return Ok(());
        }
        must(state.gate == Gate::Open && state.unresolved.is_empty(), || "the gate is open".into())?;
        for edge in &state.edges {
            let phase = self.live.get(&edge.upstream).map(ResourceState::phase);
            must(phase == Some(Phase::Ready), || format!("runs while {} is {phase:?}", edge.upstream_ref))?;
            for flow in &edge.values {
                let filled = state.inputs.iter().any(|input| input.field == flow.dependent_field);
                must(filled, || format!("runs with a hole at {}", flow.dependent_field))?;
            }
        }
        Ok(())
    }

    fn torn_down_last(&self, id: ResourceId) -> Result<(), String> {
        for other in self.live.values().filter(|other| other.id().id != id) {
            let depends = other.edges.iter().any(|edge| edge.upstream == id);
            let owned = other.id().owner() == Some(id);
            must(!depends && !owned, || {
                format!("{} goes while {} is there", self.live[&id].id().reference(), other.id().reference())
            })?;
        }
        Ok(())
    }

    /// One live claim, rising epochs, and no outcome under a dead fence.
    fn fence(&mut self, id: ResourceId, event: &ResourceEvent) -> Result<(), String> {
        let epoch = match event {
            ResourceEvent::Claimed(claim) => {
                must(!self.claims.contains_key(&id), || "one live claim".into())?;
                let last = self.epochs.insert(id, claim.epoch.0).unwrap_or_default();
                self.claims.insert(id, claim.clone());
                return must(claim.epoch.0 > last, || "epochs rise".into());
            }
            ResourceEvent::Worked(worked) => worked.epoch,
            ResourceEvent::Progressed { epoch, .. }
            | ResourceEvent::RolledUp { epoch, .. }
            | ResourceEvent::FinalizerStripped { epoch, .. }
            | ResourceEvent::ClaimReleased { epoch, .. } => *epoch,
            ResourceEvent::Observed(observed) => observed.epoch,
            ResourceEvent::AttemptFailed(failed) => failed.epoch,
            ResourceEvent::CompositionAccepted(accepted) => accepted.epoch,
            _ => return Ok(()),
        };
        let claim = self.claims.remove(&id).ok_or("an outcome without a live claim")?;
        must(claim.epoch == epoch, || "an outcome under a dead fence".into())
    }

    /// A decision is done once.
    fn once(&mut self, id: ResourceId, event: &ResourceEvent) -> Result<(), String> {
        let key = |what: &str, generation: Generation, round: Round| format!("{what} {generation}.{round}");
        let key = match event {
            ResourceEvent::Worked(worked) => key("work", worked.generation, worked.round),
            ResourceEvent::FinalizerStripped { finalizer, .. } => format!("strip {finalizer}"),
            ResourceEvent::Composed { .. } => {
                let pass = self.live[&id].pass.as_ref().ok_or("a pass ends that is not live")?;
                key("compose", pass.generation, pass.compose_round)
            }
            _ => return Ok(()),
        };
        must(self.done.insert((id, key.clone())), || format!("{key} was done before"))
    }

    fn no_ready_over_unready(&self, moved: ResourceId) -> Result<(), String> {
        let Some(state) = self.live.get(&moved) else { return Ok(()) };
        let owner = state.id().owner().and_then(|owner| self.live.get(&owner));
        for owner in owner.into_iter().chain([state]) {
            if owner.phase() != Phase::Ready || !owner.shape.composes {
                continue;
            }
            for child in self.live.values().filter(|child| child.id().owner() == Some(owner.id().id)) {
                let counts = child.dropped.is_none() && child.quarantine.is_none();
                must(!counts || child.phase() == Phase::Ready, || {
                    let (owner, name) = (owner.id().reference(), child.id().reference());
                    format!("{owner} is Ready over {name}, which is {}", child.phase())
                })?;
            }
        }
        Ok(())
    }
}
