//! A batch turned into the arrays that `append` takes: one vector per column, in the order of its parameters.

mod heads;

use self::heads::{NewHeads, OldHeads, todo};
use crate::codec::PayloadCodec;
use crate::codes::standing_code;
use crate::digest::{EventColumns, event_digest};
use crate::store::{Batch, HeadChange, StoreError, metadata_json};
use converge_domain::KindRef;
use converge_domain::guard::Guard;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

#[derive(Default)]
pub(super) struct Locks {
    pub ids: Vec<Uuid>,
    pub run_ends: Vec<i32>,
    pub run_exclusive: Vec<bool>,
}

/// `(unit, kind, name, id)` rows.
#[derive(Default)]
pub(super) struct Names<'a> {
    pub unit: Vec<i32>,
    pub kind: Vec<&'a str>,
    pub name: Vec<&'a str>,
    pub id: Vec<Uuid>,
}

/// `(unit, dependent, upstream)` rows.
#[derive(Default)]
pub(super) struct Edges {
    pub unit: Vec<i32>,
    pub dependent: Vec<Uuid>,
    pub upstream: Vec<Uuid>,
}

#[derive(Default)]
pub(super) struct Policies<'a> {
    pub unit: Vec<i32>,
    pub kind: Vec<&'a str>,
    pub kind_version: Vec<i16>,
    pub max_inflight: Vec<i32>,
}

#[derive(Default)]
pub(super) struct Guards {
    pub unit: Vec<i32>,
    pub code: Vec<i16>,
    pub id: Vec<Uuid>,
    pub sequence: Vec<Option<i64>>,
    pub pass_id: Vec<Option<Uuid>>,
    pub standing: Vec<Option<i16>>,
}

#[derive(Default)]
pub(super) struct Events {
    pub unit: Vec<i32>,
    pub aggregate_type: Vec<&'static str>,
    pub aggregate_id: Vec<Uuid>,
    pub sequence: Vec<i64>,
    pub event_type: Vec<String>,
    pub event_version: Vec<String>,
    pub payload: Vec<String>,
    pub metadata: Vec<String>,
    /// Of 32 bytes each, one behind the other.
    pub digests: Vec<u8>,
}

/// All arrays of one call.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub units: i32,
    pub sessions: Vec<Uuid>,
    pub locks: Locks,
    pub cap_kind: Vec<&'a str>,
    pub cap_version: Vec<i16>,
    pub new: NewHeads<'a>,
    pub old: OldHeads<'a>,
    pub has: Vec<bool>,
    pub taken: Names<'a>,
    pub freed: Names<'a>,
    pub linked: Edges,
    pub cut: Edges,
    pub policies: Policies<'a>,
    pub guards: Guards,
    pub capped_unit: Vec<i32>,
    pub capped_index: Vec<i32>,
    pub command_unit: Vec<i32>,
    pub command_id: Vec<Uuid>,
    pub events: Events,
}

/// SQL counts units from 1.
fn unit_index(unit: u32) -> Result<i32, StoreError> {
    i32::try_from(unit).ok().and_then(|unit| unit.checked_add(1)).ok_or_else(|| too_large("unit"))
}

fn too_large(what: &str) -> StoreError {
    StoreError::Data(format!("the {what} is out of range"))
}

fn bigint(value: u64, what: &str) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| too_large(what))
}

fn version(kind: &KindRef) -> Result<i16, StoreError> {
    i16::try_from(kind.kind_version).map_err(|_| too_large("kind version"))
}

/// A guard code that no guard has: the unit fails as if a guard did not hold.
const NEVER: i16 = 0;

impl<'a> Columns<'a> {
    /// Encodes `batch`. With `lock` its heads are locked before they are looked at, even if nothing in the batch
    /// needs that.
    pub(super) fn encode(batch: &'a Batch, codec: &dyn PayloadCodec, lock: bool) -> Result<Self, StoreError> {
        let mut columns = Self { units: unit_index(batch.units())? - 1, ..Self::default() };
        columns.encode_guards(batch)?;
        columns.encode_heads(batch)?;
        columns.has = todo(&columns.new, &columns.old);
        // What needs locks before its checks is argued in the function.
        if lock
            || columns.old.removals()
            || !columns.freed.unit.is_empty()
            || columns.guards.id.iter().any(|id| !id.is_nil())
        {
            columns.encode_locks(batch)?;
        }
        let mut commands = batch.commands.clone();
        commands.sort_by_key(|(unit, id)| (*id, *unit));
        commands.dedup();
        for (unit, id) in commands {
            columns.command_unit.push(unit_index(unit)?);
            columns.command_id.push(id.0);
        }
        columns.encode_events(batch, codec)?;
        // Rows that contradict rows of an earlier unit would break a unique key for the whole batch: only the
        // later unit loses, and decides again behind the earlier one.
        let lost: BTreeSet<i32> =
            batch.self_conflicts().into_iter().map(unit_index).collect::<Result<_, _>>()?;
        for unit in lost {
            columns.guards.push(unit, NEVER, Uuid::nil(), None, None, None);
            columns.drop_unique_rows(unit);
        }
        Ok(columns)
    }

    fn encode_guards(&mut self, batch: &'a Batch) -> Result<(), StoreError> {
        let mut capped: Vec<(i32, &'a KindRef)> = Vec::new();
        for (unit, guard) in &batch.guards {
            let unit = unit_index(*unit)?;
            match guard {
                Guard::Unmoved { id, sequence } => {
                    self.guards.push(unit, 1, id.0, Some(bigint(sequence.0, "sequence")?), None, None);
                }
                Guard::UpstreamReady { id } => self.guards.push(unit, 2, id.0, None, None, None),
                Guard::AncestorQuiet { id } => self.guards.push(unit, 3, id.0, None, None, None),
                Guard::InPass { id, pass_id } => self.guards.push(unit, 4, id.0, None, Some(pass_id.0), None),
                Guard::SubtreeAtLeast { id, standing } => {
                    self.guards.push(unit, 5, id.0, None, None, Some(standing_code(*standing)));
                }
                Guard::NoOpenChild { id } => self.guards.push(unit, 6, id.0, None, None, None),
                Guard::NoUnreadyChild { id } => self.guards.push(unit, 7, id.0, None, None, None),
                Guard::NoDependents { id } => self.guards.push(unit, 8, id.0, None, None, None),
                Guard::NoChildren { id } => self.guards.push(unit, 9, id.0, None, None, None),
                Guard::UnderCap { kind } => capped.push((unit, kind)),
            }
        }
        let policies = batch.heads.iter().filter_map(|change| change.rows.policy.as_ref().map(|p| &p.kind));
        let kinds: BTreeSet<&'a KindRef> = capped.iter().map(|(_, kind)| *kind).chain(policies).collect();
        let mut index = BTreeMap::new();
        for (at, kind) in (1..).zip(kinds) {
            self.cap_kind.push(&kind.kind);
            self.cap_version.push(version(kind)?);
            index.insert(kind, at);
        }
        capped.sort_by_key(|(unit, _)| *unit);
        for (unit, kind) in capped {
            self.capped_unit.push(unit);
            self.capped_index.push(index[kind]);
        }
        Ok(())
    }

    /// All heads to lock, each once, in the order of ids, cut into runs of one mode: written heads exclusively,
    /// merely guarded ones shared.
    fn encode_locks(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut modes: BTreeMap<Uuid, bool> =
            self.guards.id.iter().filter(|id| !id.is_nil()).map(|id| (*id, false)).collect();
        modes.extend(batch.heads.iter().filter(|h| h.expected.0 > 0).map(|h| (h.head.id.0, true)));
        for (id, exclusive) in modes {
            if self.locks.run_exclusive.last() != Some(&exclusive) {
                self.locks.run_exclusive.push(exclusive);
                self.locks.run_ends.push(0);
            }
            self.locks.ids.push(id);
            let end = i32::try_from(self.locks.ids.len()).map_err(|_| too_large("batch"))?;
            if let Some(last) = self.locks.run_ends.last_mut() {
                *last = end;
            }
        }
        Ok(())
    }

    fn encode_heads(&mut self, batch: &'a Batch) -> Result<(), StoreError> {
        // A head that comes and goes in one batch leaves events only; there is nothing to insert.
        let is_new = |change: &&HeadChange| change.expected.0 == 0 && !change.rows.head_removed;
        let (mut new, mut old): (Vec<&HeadChange>, Vec<&HeadChange>) = batch.heads.iter().partition(is_new);
        // By (kind, name, id): the order in which index entries of new heads and names are made.
        let by_name = |a: &&HeadChange, b: &&HeadChange| {
            let (a, b) = (&a.head, &b.head);
            (&a.kind, &a.name, a.id).cmp(&(&b.kind, &b.name, b.id))
        };
        new.sort_unstable_by(by_name);
        for change in new {
            self.new.push(change)?;
        }
        old.sort_unstable_by_key(|change| change.head.id);
        for change in old {
            self.old.push(change)?;
        }
        // Names, by (kind, name), of heads old and new.
        let touched = |change: &&HeadChange| {
            let rows = &change.rows;
            rows.name_taken.is_some()
                || rows.name_freed.is_some()
                || rows.policy.is_some()
                || !rows.edges_added.is_empty()
                || !rows.edges_removed.is_empty()
        };
        let mut named: Vec<&HeadChange> = batch.heads.iter().filter(touched).collect();
        named.sort_unstable_by(by_name);
        for change in named {
            self.encode_rows(change)?;
        }
        let claims = batch.heads.iter().filter_map(|change| change.rows.claim.as_ref()?.as_ref());
        self.sessions = claims.map(|claim| claim.session.0).collect::<BTreeSet<_>>().into_iter().collect();
        Ok(())
    }

    fn encode_rows(&mut self, change: &'a HeadChange) -> Result<(), StoreError> {
        let (unit, id, rows) = (unit_index(change.unit)?, change.head.id.0, &change.rows);
        if let Some(name) = &rows.name_taken {
            self.taken.push(unit, &name.kind, &name.name, id);
        }
        if let Some(name) = &rows.name_freed {
            self.freed.push(unit, &name.kind, &name.name, id);
        }
        for upstream in &rows.edges_added {
            self.linked.push(unit, id, upstream.0);
        }
        for upstream in &rows.edges_removed {
            self.cut.push(unit, id, upstream.0);
        }
        if let Some(policy) = &rows.policy {
            self.policies.unit.push(unit);
            self.policies.kind.push(&policy.kind.kind);
            self.policies.kind_version.push(version(&policy.kind)?);
            self.policies.max_inflight.push(policy.max_inflight);
        }
        Ok(())
    }

    fn encode_events(&mut self, batch: &Batch, codec: &dyn PayloadCodec) -> Result<(), StoreError> {
        let mut encoded = metadata_json();
        for event in &batch.events {
            let event_type = event.event.event_type();
            let event_version = event.event.event_version();
            let payload = event.event.to_json().map_err(|error| StoreError::Data(error.to_string()))?;
            let payload = codec.seal(event.aggregate_id, &event_type, payload)?;
            let metadata = encoded(&event.metadata)?;
            let digest = event_digest(EventColumns {
                aggregate_type: event.aggregate_type.as_str(),
                aggregate_id: event.aggregate_id.0,
                sequence: event.sequence.0,
                event_type: &event_type,
                event_version: &event_version,
                payload: &payload,
                metadata: &metadata,
            });
            self.events.unit.push(unit_index(event.unit)?);
            self.events.aggregate_type.push(event.aggregate_type.as_str());
            self.events.aggregate_id.push(event.aggregate_id.0);
            self.events.sequence.push(bigint(event.sequence.0, "sequence")?);
            self.events.event_type.push(event_type);
            self.events.event_version.push(event_version);
            self.events.payload.push(payload);
            self.events.metadata.push(metadata);
            self.events.digests.extend_from_slice(&digest);
        }
        Ok(())
    }

    /// Takes a lost unit's names and command ids out, lest they collide with those of the unit it lost to. The
    /// unit is reported through its guard.
    fn drop_unique_rows(&mut self, unit: i32) {
        self.taken.remove(unit);
        let keep: Vec<bool> = self.command_unit.iter().map(|at| *at != unit).collect();
        retain(&mut self.command_unit, &keep);
        retain(&mut self.command_id, &keep);
    }
}

fn retain<T>(column: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    column.retain(|_| keep.next().copied().unwrap_or(true));
}

impl Guards {
    fn push(
        &mut self,
        unit: i32,
        code: i16,
        id: Uuid,
        sequence: Option<i64>,
        pass_id: Option<Uuid>,
        standing: Option<i16>,
    ) {
        self.unit.push(unit);
        self.code.push(code);
        self.id.push(id);
        self.sequence.push(sequence);
        self.pass_id.push(pass_id);
        self.standing.push(standing);
    }
}

impl<'a> Names<'a> {
    fn push(&mut self, unit: i32, kind: &'a str, name: &'a str, id: Uuid) {
        self.unit.push(unit);
        self.kind.push(kind);
        self.name.push(name);
        self.id.push(id);
    }

    fn remove(&mut self, unit: i32) {
        let keep: Vec<bool> = self.unit.iter().map(|at| *at != unit).collect();
        retain(&mut self.unit, &keep);
        retain(&mut self.kind, &keep);
        retain(&mut self.name, &keep);
        retain(&mut self.id, &keep);
    }
}

impl Edges {
    fn push(&mut self, unit: i32, dependent: Uuid, upstream: Uuid) {
        self.unit.push(unit);
        self.dependent.push(dependent);
        self.upstream.push(upstream);
    }
}
