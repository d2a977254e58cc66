//! The append call in memory: checks first, then writes, like the SQL function.

use super::tables::{BatchRecord, HeadRecord, Tables};
use super::{Fault, MemoryStore};
use crate::codec::PayloadCodec;
use crate::codes::standing_code;
use crate::digest::{CHAIN_START, EventColumns, Hash, batch_digest, chain, event_digest};
use crate::rows::ChildMark;
use crate::store::{
    Appended, Batch, Before, ConflictKind, Head, HeadChange, StoreError, StoredEvent, UnitConflict,
    metadata_json,
};
use converge_domain::guard::Guard;
use converge_domain::resource::Phase;
use converge_domain::{BatchId, KindRef, Position, ResourceId, Timestamp};
use std::collections::{BTreeMap, HashMap};

impl MemoryStore {
    pub(super) fn append_batch(&self, batch: &Batch) -> Result<Appended, StoreError> {
        match self.next_fault() {
            Some(Fault::Fail(error)) => return Err(error),
            Some(Fault::LoseCall) => return Err(Self::unknown(batch.batch_id)),
            Some(Fault::LoseAnswer) => {
                self.write(batch)?;
                return Err(Self::unknown(batch.batch_id));
            }
            None => {}
        }
        self.write(batch)
    }

    fn write(&self, batch: &Batch) -> Result<Appended, StoreError> {
        let digests = digests(batch, self.codec.as_ref())?;
        // PostgreSQL's text cannot hold it, so this store refuses it as well.
        if batch.heads.iter().any(|change| change.head.name.contains('\0')) {
            return Err(StoreError::Data("a name holds a NUL byte".to_owned()));
        }
        let now_us = self.now_us();
        let mut tables = self.tables();
        if tables.fenced.contains(&batch.batch_id) {
            return Err(StoreError::Unavailable("the batch was given up".to_owned()));
        }
        let lost = tables.check(batch);
        let appended = tables.commit(batch, &digests, &lost, now_us);
        drop(tables);
        if appended.count > 0 {
            self.appended.notify_waiters();
        }
        Ok(appended)
    }

    /// Like its SQL twin it fences a batch that it does not find.
    pub(super) fn look_up_batch(&self, batch_id: BatchId) -> Option<Appended> {
        let mut tables = self.tables();
        let found =
            tables.batches.iter().rev().find(|batch| batch.batch_id == batch_id).map(|batch| Appended {
                first: Position(batch.first),
                count: u64::from(batch.count),
                committed_at: Timestamp(batch.committed_at_us.div_euclid(1000)),
                conflicts: Vec::new(),
            });
        if found.is_none() {
            tables.fenced.insert(batch_id);
        }
        found
    }
}

fn digests(batch: &Batch, codec: &dyn PayloadCodec) -> Result<Vec<Hash>, StoreError> {
    let mut encoded = metadata_json();
    let mut digests = Vec::with_capacity(batch.events.len());
    for event in &batch.events {
        let event_type = event.event.event_type();
        let payload = event.event.to_json().map_err(|error| StoreError::Data(error.to_string()))?;
        digests.push(event_digest(EventColumns {
            aggregate_type: event.aggregate_type.as_str(),
            aggregate_id: event.aggregate_id.0,
            sequence: event.sequence.0,
            event_type: &event_type,
            event_version: &event.event.event_version(),
            payload: &codec.seal(event.aggregate_id, &event_type, payload)?,
            metadata: &encoded(&event.metadata)?,
        }));
    }
    Ok(digests)
}

impl Tables {
    /// The units that do not survive. A lower conflict code wins, as in SQL: duplicate, head, guard, name.
    fn check(&self, batch: &Batch) -> BTreeMap<u32, ConflictKind> {
        let rank = |kind: ConflictKind| match kind {
            ConflictKind::Duplicate => 1,
            ConflictKind::Head => 2,
            ConflictKind::Guard => 3,
            ConflictKind::Name => 4,
        };
        let mut lost: BTreeMap<u32, ConflictKind> = BTreeMap::new();
        let mut lose = |unit: u32, kind: ConflictKind| {
            let entry = lost.entry(unit).or_insert(kind);
            if rank(kind) < rank(*entry) {
                *entry = kind;
            }
        };
        let self_conflicts = batch.self_conflicts();
        for unit in &self_conflicts {
            lose(*unit, ConflictKind::Guard);
        }
        for (unit, id) in &batch.commands {
            if self.commands.contains(id) && !self_conflicts.contains(unit) {
                lose(*unit, ConflictKind::Duplicate);
            }
        }
        for change in &batch.heads {
            let sequence = self.heads.get(&change.head.id).map_or(0, |record| record.head.sequence.0);
            if sequence != change.expected.0 {
                lose(change.unit, ConflictKind::Head);
            }
            if let Some(name) = &change.rows.name_taken
                && !self_conflicts.contains(&change.unit)
                && self.names.get(name).is_some_and(|holder| *holder != change.head.id)
                && !batch
                    .heads
                    .iter()
                    .any(|other| other.unit == change.unit && other.rows.name_freed.as_ref() == Some(name))
            {
                lose(change.unit, ConflictKind::Name);
            }
        }
        for (unit, guard) in &batch.guards {
            if !self.holds(guard) {
                lose(*unit, ConflictKind::Guard);
            }
        }
        self.check_caps(batch, &mut lost);
        lost
    }

    /// Caps come last: a unit counts only if it survives everything else.
    fn check_caps(&self, batch: &Batch, lost: &mut BTreeMap<u32, ConflictKind>) {
        let mut wanted: BTreeMap<u32, BTreeMap<&KindRef, u64>> = BTreeMap::new();
        for (unit, guard) in &batch.guards {
            if let Guard::UnderCap { kind } = guard {
                *wanted.entry(*unit).or_default().entry(kind).or_default() += 1;
            }
        }
        let mut used: HashMap<&KindRef, u64> = HashMap::new();
        for (unit, kinds) in wanted {
            if lost.contains_key(&unit) {
                continue;
            }
            let fits = kinds.iter().all(|(kind, count)| {
                let cap = self.policies.get(*kind).copied().unwrap_or(0);
                let live = self.claims_of_kind.get(*kind).copied().unwrap_or(0);
                cap == 0
                    || live + used.get(kind).copied().unwrap_or(0) + count <= u64::from(cap.unsigned_abs())
            });
            if fits {
                for (kind, count) in kinds {
                    *used.entry(kind).or_default() += count;
                }
            } else {
                lost.insert(unit, ConflictKind::Guard);
            }
        }
    }

    fn holds(&self, guard: &Guard) -> bool {
        let head = |id: &ResourceId| self.heads.get(&(*id).into());
        let alive = |record: &HeadRecord| record.phase != Some(Phase::Deleting);
        match guard {
            Guard::Unmoved { id, sequence } => {
                self.heads.get(id).map_or(0, |record| record.head.sequence.0) == sequence.0
            }
            Guard::UpstreamReady { id } => head(id).is_some_and(|record| record.phase == Some(Phase::Ready)),
            Guard::AncestorQuiet { id } => {
                head(id).is_some_and(|record| alive(record) && record.pass_id.is_none())
            }
            Guard::InPass { id, pass_id } => {
                head(id).is_some_and(|record| alive(record) && record.pass_id == Some(*pass_id))
            }
            Guard::SubtreeAtLeast { id, standing } => head(id)
                .and_then(|record| record.subtree)
                .is_some_and(|subtree| standing_code(subtree) >= standing_code(*standing)),
            Guard::NoOpenChild { id } => !self.has_child(*id, &[ChildMark::Open]),
            Guard::NoUnreadyChild { id } => !self.has_child(*id, &[ChildMark::Open, ChildMark::Impaired]),
            Guard::NoDependents { id } => !self.edges.range((*id, NIL)..).any(|(upstream, _)| upstream == id),
            Guard::NoChildren { id } => {
                self.children.range((*id, NIL)..).next().is_none_or(|(parent, _)| parent != id)
            }
            Guard::UnderCap { .. } => true,
        }
    }

    fn commit(
        &mut self,
        batch: &Batch,
        digests: &[Hash],
        lost: &BTreeMap<u32, ConflictKind>,
        now_us: i64,
    ) -> Appended {
        let last = self.batches.last();
        let first = last.map_or(1, |last| last.first + u64::from(last.count));
        let previous = last.map_or(CHAIN_START, |last| last.chain);
        let committed_at_us = last.map_or(now_us, |last| now_us.max(last.committed_at_us));
        let committed_at = Timestamp(committed_at_us.div_euclid(1000));
        let survives = |unit: &u32| !lost.contains_key(unit);

        let mut survived: Vec<Hash> = Vec::with_capacity(digests.len());
        for (event, digest) in batch.events.iter().zip(digests).filter(|(event, _)| survives(&event.unit)) {
            self.events.push(StoredEvent {
                position: Position(first + survived.len() as u64),
                aggregate_type: event.aggregate_type,
                aggregate_id: event.aggregate_id,
                sequence: event.sequence,
                event: event.event.clone(),
                metadata: event.metadata.clone(),
                committed_at,
                before: Before::default(),
            });
            survived.push(*digest);
        }
        // Frees before takes: a unit may free a name on one aggregate and take it on another.
        let surviving = || batch.heads.iter().filter(|change| survives(&change.unit));
        for change in surviving() {
            if let Some(name) = &change.rows.name_freed
                && self.names.get(name) == Some(&change.head.id)
            {
                self.names.remove(name);
            }
        }
        for change in surviving() {
            self.write_head(change);
        }
        self.commands.extend(batch.commands.iter().filter(|(unit, _)| survives(unit)).map(|(_, id)| *id));

        let count = u32::try_from(survived.len()).unwrap_or(u32::MAX);
        if count > 0 {
            let digest = batch_digest(&survived);
            let chain = chain(&previous, &digest, first, count, committed_at_us);
            self.batches.push(BatchRecord { batch_id: batch.batch_id, first, count, committed_at_us, chain });
        }
        let conflicts = lost.iter().map(|(unit, kind)| UnitConflict { unit: *unit, kind: *kind }).collect();
        let first = if count > 0 { first } else { 0 };
        Appended { first: Position(first), count: u64::from(count), committed_at, conflicts }
    }

    fn write_head(&mut self, change: &HeadChange) {
        let (head, rows) = (&change.head, &change.rows);
        let id = ResourceId(head.id.0);
        let old = self.heads.remove(&head.id);
        let (mut queue, mut timer, mut child, mut claim) =
            old.map_or((None, None, None, None), |old| (old.queue, old.timer, old.child, old.claim));
        if let Some((kind, priority, due_at)) = &queue {
            self.queue.remove(&(kind.clone(), *priority, *due_at, id));
        }
        if let Some(due_at) = timer {
            self.timers.remove(&(due_at, id));
        }
        if let Some((parent, _)) = child {
            self.child.remove(&(parent, id));
        }
        if let Some((kind, session)) = &claim {
            self.claims.remove(&(*session, id));
            if let Some(count) = self.claims_of_kind.get_mut(kind) {
                *count -= 1;
            }
        }
        for upstream in &rows.edges_removed {
            self.edges.remove(&(*upstream, id));
        }
        if let Some(name) = &rows.name_taken {
            self.names.insert(name.clone(), head.id);
        }
        if let Some(policy) = &rows.policy {
            self.policies.insert(policy.kind.clone(), policy.max_inflight);
        }
        self.edges.extend(rows.edges_added.iter().map(|upstream| (*upstream, id)));
        if rows.head_removed {
            if let Some(parent) = head.parent {
                self.children.remove(&(parent, id));
            }
            return;
        }
        if let Some(row) = &rows.queue {
            queue = row.as_ref().map(|row| (row.kind.clone(), row.priority, row.due_at));
        }
        if let Some(row) = &rows.timer {
            timer = row.map(|row| row.due_at);
        }
        if let Some(row) = &rows.child {
            child = row.map(|row| (row.parent, row.mark));
        }
        if let Some(row) = &rows.claim {
            claim = row.as_ref().map(|row| (row.kind.clone(), row.session));
        }
        if let Some((kind, priority, due_at)) = &queue {
            self.queue.insert((kind.clone(), *priority, *due_at, id));
        }
        if let Some(due_at) = timer {
            self.timers.insert((due_at, id));
        }
        if let Some((parent, mark)) = child {
            self.child.insert((parent, id), mark);
        }
        if let Some((kind, session)) = &claim {
            self.claims.insert((*session, id));
            self.claimants.insert(*session);
            *self.claims_of_kind.entry(kind.clone()).or_default() += 1;
        }
        if let Some(parent) = head.parent {
            self.children.insert((parent, id));
        }
        let record = HeadRecord {
            head: Head { id: head.id, sequence: change.sequence, state: head.state.clone() },
            aggregate_type: change.aggregate_type,
            phase: head.phase,
            standing: head.standing,
            subtree: head.subtree,
            pass_id: head.pass_id,
            outward: head.outward,
            queue,
            timer,
            child,
            claim,
        };
        self.heads.insert(head.id, record);
    }
}

const NIL: ResourceId = ResourceId(uuid::Uuid::nil());
