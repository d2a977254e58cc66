//! A batch on its way: aggregates as they will be, the groups that make them so, and what each relies on.

use super::queue::Pending;
use super::units::Units;
use super::{InlineProjector, StepResult};
use crate::store::{Batch, HeadChange, NewEvent, StoredEvent};
use converge_domain::guard::Guard;
use converge_domain::resource::ResourceState;
use converge_domain::{Address, AggregateId, AnyEvent, AnyState, BatchId, CommandId, ResourceId, Sequence};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// One aggregate in the batch.
#[derive(Clone)]
pub(super) struct Slot {
    pub address: Address,
    /// As the batch found it.
    pub base: AnyState,
    pub base_sequence: Sequence,
    /// After the groups drafted so far.
    pub state: AnyState,
    pub sequence: Sequence,
    /// Loaded for this batch, not taken from the cache.
    pub fresh: bool,
    /// The last group that appended to it.
    pub writer: Option<usize>,
}

impl Slot {
    pub(super) fn new(address: Address, sequence: Sequence, state: AnyState, fresh: bool) -> Self {
        let base = state.clone();
        Self { address, base, base_sequence: sequence, state, sequence, fresh, writer: None }
    }
}

/// An event of the batch, in the order of positions.
pub(super) struct DraftEvent {
    pub group: usize,
    pub address: Address,
    pub sequence: Sequence,
    pub event: AnyEvent,
    /// Appended to an owner because of somebody below, not asked for by the group.
    pub demotion: bool,
}

/// A group that is decided.
pub(super) struct DraftGroup {
    pub pending: Pending,
    pub guards: Vec<Guard>,
    /// Per step: its aggregate's state after the group.
    pub states: Vec<(AggregateId, AnyState)>,
}

/// The batch.
#[derive(Default)]
pub(super) struct Draft {
    pub slots: HashMap<AggregateId, Slot>,
    pub groups: Vec<DraftGroup>,
    pub events: Vec<DraftEvent>,
    pub units: Units,
    /// Owners whose children's rows this batch touches, and upstreams whose edges it touches.
    pub owners_touched: HashSet<ResourceId>,
    pub upstreams_touched: HashSet<ResourceId>,
    pub command_ids: HashSet<CommandId>,
}

/// A draft ready for the store, with what is needed to answer afterwards.
pub(super) struct Sealed {
    /// By their index in the draft.
    pub groups: BTreeMap<usize, DraftGroup>,
    /// Unit of each group of the draft.
    pub unit_of: Arc<Vec<u32>>,
    /// Per event of the batch: its group, and whether it is a demotion.
    pub group_of: Vec<(usize, bool)>,
    /// Resources as they were before the batch.
    pub bases: Arc<HashMap<AggregateId, Arc<ResourceState>>>,
    pub batch: Batch,
}

impl Draft {
    /// Derives the rows and numbers the units.
    pub(super) fn seal(mut self, projector: &dyn InlineProjector) -> Sealed {
        let unit_of = self.units.number();
        let mut heads = Vec::new();
        let mut bases = HashMap::new();
        for slot in self.slots.values() {
            let Some(writer) = slot.writer else { continue };
            if let Some(base) = slot.base.as_resource() {
                bases.insert(slot.address.id, Arc::clone(base));
            }
            let (head, rows) = projector.project(slot.address, &slot.base, &slot.state);
            heads.push(HeadChange {
                unit: unit_of[writer],
                aggregate_type: slot.address.aggregate_type,
                expected: slot.base_sequence,
                sequence: slot.sequence,
                head,
                rows,
            });
        }
        let mut guards = Vec::new();
        let mut commands = Vec::new();
        for (group, unit) in self.groups.iter_mut().zip(&unit_of) {
            guards.extend(group.guards.drain(..).map(|guard| (*unit, guard)));
            commands.extend(group.pending.group.command_id.map(|id| (*unit, id)));
        }
        let mut group_of = Vec::with_capacity(self.events.len());
        let mut events = Vec::with_capacity(self.events.len());
        for event in self.events {
            group_of.push((event.group, event.demotion));
            events.push(NewEvent {
                unit: unit_of[event.group],
                aggregate_type: event.address.aggregate_type,
                aggregate_id: event.address.id,
                sequence: event.sequence,
                event: event.event,
                metadata: self.groups[event.group].pending.group.metadata.clone(),
            });
        }
        let batch = Batch { batch_id: new_batch_id(), events, heads, guards, commands };
        let groups = self.groups.into_iter().enumerate().collect();
        Sealed { groups, unit_of: Arc::new(unit_of), group_of, bases: Arc::new(bases), batch }
    }
}

impl Sealed {
    /// How many units it has.
    pub(super) fn unit_count(&self) -> usize {
        self.groups.keys().map(|group| self.unit_of[*group]).collect::<HashSet<_>>().len()
    }

    /// Two halves by units, each in the batch's order.
    pub(super) fn split(self) -> (Self, Self) {
        let units: BTreeSet<u32> = self.groups.keys().map(|group| self.unit_of[*group]).collect();
        let middle = units.iter().copied().nth(units.len() / 2).unwrap_or(0);
        let low = |unit: u32| unit < middle;
        let (low_groups, high_groups) =
            self.groups.into_iter().partition(|(group, _)| low(self.unit_of[*group]));
        let (low_events, high_events): (Vec<_>, Vec<_>) =
            self.batch.events.into_iter().zip(self.group_of).partition(|(event, _)| low(event.unit));
        let (low_heads, high_heads) = self.batch.heads.into_iter().partition(|change| low(change.unit));
        let (low_guards, high_guards) = self.batch.guards.into_iter().partition(|(unit, _)| low(*unit));
        let (low_commands, high_commands) = self.batch.commands.into_iter().partition(|(unit, _)| low(*unit));
        let half = |groups, events: Vec<(NewEvent, (usize, bool))>, heads, guards, commands| {
            let (events, group_of) = events.into_iter().unzip();
            let batch = Batch { batch_id: new_batch_id(), events, heads, guards, commands };
            Self { groups, unit_of: self.unit_of.clone(), group_of, bases: self.bases.clone(), batch }
        };
        (
            half(low_groups, low_events, low_heads, low_guards, low_commands),
            half(high_groups, high_events, high_heads, high_guards, high_commands),
        )
    }
}

/// A new id. Version 7 ids rise with time, so the unique index on them grows at one end.
pub(super) fn new_batch_id() -> BatchId {
    BatchId(uuid::Uuid::now_v7())
}

/// A group's answers per step, from the events it appended.
pub(super) fn step_results(states: Vec<(AggregateId, AnyState)>, events: &[&StoredEvent]) -> Vec<StepResult> {
    states
        .into_iter()
        .map(|(id, state)| {
            let own = events.iter().filter(|event| event.aggregate_id == id);
            StepResult { state, events: own.map(|event| (*event).clone()).collect() }
        })
        .collect()
}
