//! Deciding a batch in memory.
//!
//! Groups are decided one after another on the states that earlier groups left behind. A group that fails is
//! undone as if it had never been there; the others do not notice.

use super::cache::Ticket;
use super::draft::{Draft, DraftEvent, DraftGroup, Slot};
use super::guards::{Subject, holds, subject};
use super::handle::Inner;
use super::queue::Pending;
use super::{CommandGroup, ExecuteError};
use crate::clock::Clock;
use crate::store::StoreError;
use converge_domain::guard::Guard;
use converge_domain::resource::{Consequences, ResourceCommand, ResourceEvent, ResourceState, consequences};
use converge_domain::{
    Address, AggregateId, AggregateType, AnyCommand, AnyEvent, AnyState, DomainError, ResourceId, Sequence,
};
use futures::FutureExt;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A group that appends nothing, decided on states from before the batch.
pub(super) struct Nothing {
    pub pending: Pending,
    pub verdict: Verdict,
    /// Cached aggregates it was decided on, to be proven current: a stale cache must never refuse a valid command, or
    /// call one done that is not.
    pub unproven: Vec<(AggregateId, Sequence)>,
}

/// Why a group appends nothing.
pub(super) enum Verdict {
    /// Everything is as it asks; the states of its steps' aggregates.
    Unchanged(Vec<(AggregateId, AnyState)>),
    /// Domain code refused a step.
    Refused { step: usize, error: DomainError },
}

/// What came of deciding a batch.
pub(super) struct Decided {
    pub draft: Draft,
    pub nothing: Vec<Nothing>,
    /// To be decided again in the next batch.
    pub again: Vec<Pending>,
}

/// One group, decided but not yet part of the draft.
#[derive(Default)]
struct Trial {
    events: Vec<DraftEvent>,
    guards: Vec<Guard>,
    /// Earlier groups it rests on.
    joins: BTreeSet<usize>,
    owners: HashSet<ResourceId>,
    upstreams: HashSet<ResourceId>,
    /// Aggregates it was decided on.
    touched: BTreeSet<AggregateId>,
}

enum Failure {
    Domain {
        step: usize,
        error: DomainError,
    },
    Store(StoreError),
    /// It rests on something this batch changes and only the next can check.
    Later,
    /// A guard fails already.
    Conflict,
}

struct Decider<'a> {
    inner: &'a Inner,
    draft: Draft,
    ticket: Ticket,
    /// Slots as they were before the group on trial.
    journal: HashMap<AggregateId, Slot>,
}

impl Inner {
    pub(super) async fn decide(&self, batch: Vec<Pending>, ticket: Ticket) -> Decided {
        let mut decider = Decider { inner: self, draft: Draft::default(), ticket, journal: HashMap::new() };
        let mut decided = Decided { draft: Draft::default(), nothing: Vec::new(), again: Vec::new() };
        if let Err(error) = decider.prefetch(&batch).await {
            for pending in batch {
                pending.answer(Err(ExecuteError::Store(error.clone())));
            }
            return decided;
        }
        for pending in batch {
            decider.group(pending, &mut decided).await;
        }
        decided.draft = decider.draft;
        decided
    }
}

impl Decider<'_> {
    /// Loads what the batch's steps need, then those aggregates' owners, each in one call.
    async fn prefetch(&mut self, batch: &[Pending]) -> Result<(), StoreError> {
        self.assume_new(batch);
        let steps = batch.iter().flat_map(|pending| pending.group.steps.iter());
        let addresses: Vec<Address> = steps.map(|(address, _)| *address).collect();
        self.load(&addresses).await?;
        let owners: Vec<Address> = addresses
            .iter()
            .filter_map(|address| self.draft.slots.get(&address.id))
            .filter_map(|slot| slot.state.as_resource()?.identity.as_ref()?.owner())
            .map(resource_address)
            .collect();
        self.load(&owners).await
    }

    /// Aggregates whose ids their callers have just made are not looked for. They are as unproven as cached ones: should one
    /// exist after all, the compare-and-set says so, and the next attempt loads it.
    fn assume_new(&mut self, batch: &[Pending]) {
        for pending in batch.iter().filter(|pending| pending.attempts == 0) {
            let new = &pending.group.new;
            for (address, _) in pending.group.steps.iter().filter(|(address, _)| new.contains(&address.id)) {
                if self.inner.cache.get(address.id).is_none() {
                    let empty = AnyState::empty(address.aggregate_type);
                    let slot = Slot::new(*address, Sequence(0), empty, false);
                    self.draft.slots.entry(address.id).or_insert(slot);
                }
            }
        }
    }

    async fn load(&mut self, addresses: &[Address]) -> Result<(), StoreError> {
        let mut missing: Vec<Address> = Vec::new();
        let mut asked = HashSet::new();
        for address in addresses {
            if self.draft.slots.contains_key(&address.id) || !asked.insert(address.id) {
                continue;
            }
            match self.inner.cache.get(address.id) {
                Some((sequence, state)) => {
                    self.draft.slots.insert(address.id, Slot::new(*address, sequence, state, false));
                }
                None => missing.push(*address),
            }
        }
        self.load_fresh(&missing).await
    }

    /// Reads heads from the store into slots, replacing what is there.
    async fn load_fresh(&mut self, addresses: &[Address]) -> Result<(), StoreError> {
        if addresses.is_empty() {
            return Ok(());
        }
        let ids: Vec<AggregateId> = addresses.iter().map(|address| address.id).collect();
        let heads = self.inner.read_with_patience(|store| {
            let ids = ids.clone();
            async move { store.heads(&ids).await }
        });
        let mut heads: HashMap<AggregateId, _> =
            heads.await?.into_iter().map(|head| (head.id, head)).collect();
        for address in addresses {
            let (sequence, state) = match heads.remove(&address.id) {
                Some(head) => {
                    self.inner.cache.put(self.ticket, head.id, head.sequence, head.state.clone());
                    (head.sequence, head.state)
                }
                None => (Sequence(0), AnyState::empty(address.aggregate_type)),
            };
            self.draft.slots.insert(address.id, Slot::new(*address, sequence, state, true));
        }
        Ok(())
    }

    /// Decides one group and files the result.
    async fn group(&mut self, mut pending: Pending, decided: &mut Decided) {
        let index = self.draft.groups.len();
        if pending.group.command_id.is_some_and(|id| self.draft.command_ids.contains(&id)) {
            // Its twin is in this batch; whether it is a duplicate depends on the twin's fate.
            decided.again.push(pending);
            return;
        }
        let mut trial = Trial::default();
        let Err(failure) = self.run(&pending.group, index, &mut trial).await else {
            self.accept(pending, trial, decided);
            return;
        };
        self.roll_back();
        match failure {
            Failure::Domain { step, error } => {
                let slots: Vec<&Slot> =
                    trial.touched.iter().filter_map(|id| self.draft.slots.get(id)).collect();
                if slots.iter().any(|slot| slot.writer.is_some()) {
                    // Refused because of a change of this batch that might not commit.
                    decided.again.push(pending);
                    return;
                }
                let unproven = unproven(slots.into_iter());
                decided.nothing.push(Nothing {
                    pending,
                    verdict: Verdict::Refused { step, error },
                    unproven,
                });
            }
            Failure::Store(error) => pending.answer(Err(ExecuteError::Store(error))),
            Failure::Later => decided.again.push(pending),
            Failure::Conflict => {
                self.inner.cache.evict(trial.touched);
                if pending.count_attempt(self.inner.config.attempts_max) {
                    decided.again.push(pending);
                } else {
                    let attempts = pending.attempts;
                    pending.answer(Err(ExecuteError::Conflict { attempts }));
                }
            }
        }
    }

    fn accept(&mut self, mut pending: Pending, mut trial: Trial, decided: &mut Decided) {
        self.journal.clear();
        let states: Vec<(AggregateId, AnyState)> = pending
            .group
            .steps
            .iter()
            .filter_map(|(address, _)| self.draft.slots.get(&address.id))
            .map(|slot| (slot.address.id, slot.state.clone()))
            .collect();
        if trial.events.is_empty() && trial.joins.is_empty() {
            let unproven = unproven(trial.touched.iter().filter_map(|id| self.draft.slots.get(id)));
            decided.nothing.push(Nothing { pending, verdict: Verdict::Unchanged(states), unproven });
            return;
        }
        // A step that changes nothing beside others that do: its answer rests on the state that it was decided on, which may
        // come from a cache that another lane or process has left behind. Nothing of it is compared by the append, so a guard is.
        if pending.group.steps.len() > 1 {
            for (address, _) in &pending.group.steps {
                let slot = self.draft.slots.get(&address.id).filter(|slot| slot.writer.is_none());
                trial
                    .guards
                    .extend(slot.map(|slot| Guard::Unmoved { id: address.id, sequence: slot.sequence }));
            }
        }
        let index = self.draft.units.add();
        for earlier in trial.joins {
            self.draft.units.join(earlier, index);
        }
        self.draft.command_ids.extend(pending.group.command_id);
        self.draft.owners_touched.extend(trial.owners);
        self.draft.upstreams_touched.extend(trial.upstreams);
        self.draft.events.extend(trial.events);
        pending.not_before = None;
        self.draft.groups.push(DraftGroup { pending, guards: trial.guards, states });
    }

    fn roll_back(&mut self) {
        self.draft.slots.extend(self.journal.drain());
    }

    async fn run(&mut self, group: &CommandGroup, index: usize, trial: &mut Trial) -> Result<(), Failure> {
        for (step, (address, command)) in group.steps.iter().enumerate() {
            self.step(step, *address, command, index, trial).await?;
        }
        if !trial.events.is_empty() {
            for guard in &group.guards {
                self.guard(guard.clone(), index, trial)?;
            }
        }
        Ok(())
    }

    async fn step(
        &mut self,
        step: usize,
        address: Address,
        command: &AnyCommand,
        index: usize,
        trial: &mut Trial,
    ) -> Result<(), Failure> {
        // The cause's events go to the end; what must precede them is inserted here.
        let at = trial.events.len();
        let (before, events) = self.decide_one(step, address, command.clone(), index, trial).await?;
        push_events(trial, at, index, self.slot(address.id)?, &events, false);
        let Some(next) = self.consequences(address.id, &before, &events, trial)? else { return Ok(()) };
        if let Some(owner) = next.recompose_owner {
            let reason = "a child it wants was removed".to_owned();
            let command = AnyCommand::Resource(ResourceCommand::RequestRecompose { reason });
            self.change_owner(step, owner, command, at, index, trial).await?;
        }
        self.upward(step, ResourceId(address.id.0), next, at, index, trial).await
    }

    /// Decides a command on an owner, its events before the cause, and what follows from it further up.
    async fn change_owner(
        &mut self,
        step: usize,
        owner: ResourceId,
        command: AnyCommand,
        at: usize,
        index: usize,
        trial: &mut Trial,
    ) -> Result<(), Failure> {
        let address = resource_address(owner);
        self.load(&[address]).await.map_err(Failure::Store)?;
        if !self.slot(address.id)?.state.as_resource().is_some_and(|state| state.exists()) {
            return Ok(());
        }
        let (before, events) = self.decide_one(step, address, command, index, trial).await?;
        if events.is_empty() {
            let sequence = self.slot(address.id)?.sequence;
            return self.guard(Guard::Unmoved { id: address.id, sequence }, index, trial);
        }
        push_events(trial, at, index, self.slot(address.id)?, &events, true);
        match self.consequences(address.id, &before, &events, trial)? {
            Some(next) => self.upward(step, owner, next, at, index, trial).await,
            None => Ok(()),
        }
    }

    /// Upward, owner by owner. The chain is as deep as compositions nest, which the domain bounds.
    async fn upward(
        &mut self,
        step: usize,
        mut culprit: ResourceId,
        mut next: Consequences,
        at: usize,
        index: usize,
        trial: &mut Trial,
    ) -> Result<(), Failure> {
        loop {
            for guard in next.guards {
                self.guard(guard, index, trial)?;
            }
            let Some((owner, standing)) = next.raise_owner else { return Ok(()) };
            let owner_address = resource_address(owner);
            self.load(&[owner_address]).await.map_err(Failure::Store)?;
            let slot = self.slot(owner_address.id)?;
            let Some(state) = slot.state.as_resource().filter(|state| state.exists()).cloned() else {
                // Gone for good: ids are not used twice, so nothing can become wrong about it.
                return Ok(());
            };
            if state.subtree >= standing {
                return self.guard(Guard::SubtreeAtLeast { id: owner, standing }, index, trial);
            }
            let raise = ResourceCommand::RaiseSubtree {
                standing,
                culprit: Some(culprit),
                at: self.inner.clock.now(),
            };
            let command = AnyCommand::Resource(raise);
            let (before, events) = self.decide_one(step, owner_address, command, index, trial).await?;
            if events.is_empty() {
                // It does not mind as it is now; it must still be so when this commits.
                let sequence = self.slot(owner_address.id)?.sequence;
                return self.guard(Guard::Unmoved { id: owner_address.id, sequence }, index, trial);
            }
            // Before the cause: no prefix of the log shows a Ready owner over a child that is not.
            push_events(trial, at, index, self.slot(owner_address.id)?, &events, true);
            match self.consequences(owner_address.id, &before, &events, trial)? {
                Some(upward) => next = upward,
                None => return Ok(()),
            }
            culprit = owner;
        }
    }

    /// Runs one command on its slot; returns the state before and the events.
    async fn decide_one(
        &mut self,
        step: usize,
        address: Address,
        command: AnyCommand,
        index: usize,
        trial: &mut Trial,
    ) -> Result<(AnyState, Vec<AnyEvent>), Failure> {
        self.load(&[address]).await.map_err(Failure::Store)?;
        trial.touched.insert(address.id);
        let slot = self.slot(address.id)?;
        if slot.state.aggregate_type() != address.aggregate_type
            || command.aggregate_type() != address.aggregate_type
        {
            return Err(Failure::Store(StoreError::Data(format!("{} is of another type", address.id))));
        }
        if let Some(writer) = slot.writer.filter(|writer| *writer != index) {
            trial.joins.insert(writer);
        }
        let before = slot.state.clone();
        let mut state = slot.state.clone();
        // A bug in one decision must not take its lane, and everybody else's commands, down with it.
        let events = match AssertUnwindSafe(state.decide(command)).catch_unwind().await {
            Ok(Ok(events)) => events,
            Ok(Err(error)) => return Err(Failure::Domain { step, error }),
            Err(_) => {
                tracing::error!(id = %address.id, "domain code panicked while deciding");
                return Err(Failure::Store(StoreError::Corrupt(format!(
                    "domain code panicked while deciding on {}",
                    address.id
                ))));
            }
        };
        if events.is_empty() {
            return Ok((before, events));
        }
        let old = self.slot(address.id)?.clone();
        self.journal.entry(address.id).or_insert(old);
        if let Some(slot) = self.draft.slots.get_mut(&address.id) {
            slot.state = state;
            slot.sequence = Sequence(slot.sequence.0 + events.len() as u64);
            slot.writer = Some(index);
        }
        Ok((before, events))
    }

    /// What a resource's change means for others; None for other aggregates and for no change.
    fn consequences(
        &self,
        id: AggregateId,
        before: &AnyState,
        events: &[AnyEvent],
        trial: &mut Trial,
    ) -> Result<Option<Consequences>, Failure> {
        if events.is_empty() {
            return Ok(None);
        }
        let (Some(before), Some(after)) = (before.as_resource(), self.slot(id)?.state.as_resource()) else {
            return Ok(None);
        };
        note_shared_rows(before, after, trial);
        let events: Vec<ResourceEvent> = events
            .iter()
            .filter_map(|event| match event {
                AnyEvent::Resource(event) => Some(event.clone()),
                _ => None,
            })
            .collect();
        Ok(Some(consequences(before, after, &events)))
    }

    /// Takes one guard on. The append checks it against the state before the batch. That is right unless an earlier
    /// group of the batch has changed what the guard is about; later groups come after this one in the log.
    fn guard(&self, guard: Guard, index: usize, trial: &mut Trial) -> Result<(), Failure> {
        match subject(&guard) {
            Subject::Head(id) => {
                let moved = self.draft.slots.get(&id).and_then(|slot| Some((slot, slot.writer?)));
                if let Some((slot, writer)) = moved {
                    if holds(&guard, slot) {
                        // True in this batch, as long as the group that made it true commits.
                        if writer != index {
                            trial.joins.insert(writer);
                        }
                        return Ok(());
                    }
                    if writer != index {
                        trial.touched.insert(id);
                        return Err(Failure::Conflict);
                    }
                    // Changed by this very group: the guard may be about what was before.
                }
            }
            Subject::ChildrenOf(id) if self.draft.owners_touched.contains(&id) => return Err(Failure::Later),
            Subject::DependentsOf(id) if self.draft.upstreams_touched.contains(&id) => {
                return Err(Failure::Later);
            }
            Subject::ChildrenOf(_) | Subject::DependentsOf(_) | Subject::Kind => {}
        }
        trial.guards.push(guard);
        Ok(())
    }

    fn slot(&self, id: AggregateId) -> Result<&Slot, Failure> {
        self.draft
            .slots
            .get(&id)
            .ok_or_else(|| Failure::Store(StoreError::Corrupt(format!("{id} was not loaded"))))
    }
}

fn unproven<'a>(slots: impl Iterator<Item = &'a Slot>) -> Vec<(AggregateId, Sequence)> {
    slots.filter(|slot| !slot.fresh).map(|slot| (slot.address.id, slot.sequence)).collect()
}

const fn resource_address(id: ResourceId) -> Address {
    Address { aggregate_type: AggregateType::Resource, id: AggregateId(id.0) }
}

/// Remembers whose children's rows and whose incoming edges a change writes.
fn note_shared_rows(before: &Arc<ResourceState>, after: &Arc<ResourceState>, trial: &mut Trial) {
    trial.owners.extend(after.identity.as_ref().and_then(|identity| identity.owner()));
    if before.exists() != after.exists() || before.edges != after.edges {
        trial.upstreams.extend(before.edges.iter().chain(&after.edges).map(|edge| edge.upstream));
    }
}

/// Puts a resource's events at `at`, or right behind those of its own that are there already: an owner may be changed twice by one
/// cause, and its stream keeps the order in which it was decided. Both stay before the cause, and whatever is put before
/// them later comes before both.
fn push_events(trial: &mut Trial, at: usize, group: usize, slot: &Slot, events: &[AnyEvent], demotion: bool) {
    let last = trial.events.iter().rposition(|drafted| drafted.address.id == slot.address.id);
    let at = last.map_or(at, |last| at.max(last + 1));
    let first = slot.sequence.0 + 1 - events.len() as u64;
    let drafted = (first..).zip(events).map(|(sequence, event)| DraftEvent {
        group,
        address: slot.address,
        sequence: Sequence(sequence),
        event: event.clone(),
        demotion,
    });
    trial.events.splice(at..at, drafted);
}
