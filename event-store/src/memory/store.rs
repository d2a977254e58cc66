//! [`Store`] in memory.

use super::MemoryStore;
use crate::rows::{ChildMark, QueueRow, TimerRow};
use crate::store::{
    Appended, Batch, ChildrenSummary, Head, Held, LogHead, Member, QueueCursor, StagedItem, Store,
    StoreError, StoredEvent,
};
use async_trait::async_trait;
use converge_domain::resource::Standing;
use converge_domain::{
    AggregateId, AggregateType, BatchId, ClaimId, KindRef, Position, ResourceId, ResourceRef, Sequence,
    SessionId, Timestamp,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ops::Bound;
use uuid::Uuid;

const NIL: ResourceId = ResourceId(Uuid::nil());

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, batch: &Batch) -> Result<Appended, StoreError> {
        // A real store answers later: let others run, so that tests meet the same interleavings.
        tokio::task::yield_now().await;
        self.append_batch(batch)
    }

    async fn find_batch(&self, batch_id: BatchId) -> Result<Option<Appended>, StoreError> {
        Ok(self.look_up_batch(batch_id))
    }

    async fn log_head(&self) -> Result<LogHead, StoreError> {
        let tables = self.tables();
        Ok(tables.batches.last().map_or(
            LogHead { position: Position(0), chain: vec![0; 32], committed_at: None },
            |last| LogHead {
                position: Position(last.first + u64::from(last.count) - 1),
                chain: last.chain.to_vec(),
                committed_at: Some(Timestamp(last.committed_at_us.div_euclid(1000))),
            },
        ))
    }

    async fn chain_at(&self, position: Position) -> Result<Option<Vec<u8>>, StoreError> {
        let tables = self.tables();
        let at =
            tables.batches.partition_point(|batch| batch.first + u64::from(batch.count) - 1 < position.0);
        let batch = tables.batches.get(at).filter(|b| b.first + u64::from(b.count) - 1 == position.0);
        Ok(batch.map(|batch| batch.chain.to_vec()))
    }

    async fn read(&self, after: Position, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        let tables = self.tables();
        let start = usize::try_from(after.0).unwrap_or(usize::MAX).min(tables.events.len());
        Ok(tables.events.iter().skip(start).take(limit as usize).cloned().collect())
    }

    async fn read_stream(
        &self,
        id: AggregateId,
        after: Sequence,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let tables = self.tables();
        let events = tables.events.iter().filter(|event| event.aggregate_id == id && event.sequence > after);
        Ok(events.take(limit as usize).cloned().collect())
    }

    async fn read_beginnings(
        &self,
        streams: &[(AggregateId, Sequence)],
        before: Position,
        each: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let tables = self.tables();
        let beginning = |(id, end): &(AggregateId, Sequence)| {
            let (id, end) = (*id, *end);
            let of = move |event: &&StoredEvent| {
                event.aggregate_id == id && event.sequence <= end && event.position < before
            };
            tables.events.iter().filter(of).take(each as usize).cloned()
        };
        Ok(streams.iter().flat_map(beginning).collect())
    }

    async fn appended(&self) -> Result<(), StoreError> {
        self.appended.notified().await;
        Ok(())
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.now_ms())
    }

    async fn heads(&self, ids: &[AggregateId]) -> Result<Vec<Head>, StoreError> {
        let tables = self.tables();
        let ids: BTreeSet<AggregateId> = ids.iter().copied().collect();
        Ok(ids.iter().filter_map(|id| tables.heads.get(id)).map(|record| record.head.clone()).collect())
    }

    async fn heads_of_type(&self, aggregate_type: AggregateType) -> Result<Vec<Head>, StoreError> {
        let tables = self.tables();
        let records = tables.heads.values().filter(|record| record.aggregate_type == aggregate_type);
        Ok(records.map(|record| record.head.clone()).collect())
    }

    async fn names(&self, names: &[ResourceRef]) -> Result<Vec<(ResourceRef, AggregateId)>, StoreError> {
        let tables = self.tables();
        Ok(names.iter().filter_map(|name| tables.names.get(name).map(|id| (name.clone(), *id))).collect())
    }

    async fn names_of_kind(
        &self,
        kind: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(String, ResourceId)>, StoreError> {
        let tables = self.tables();
        let mut names: Vec<(String, ResourceId)> = tables
            .names
            .iter()
            .filter(|(name, _)| name.kind == kind && name.name.as_str() > after)
            .map(|(name, id)| (name.name.clone(), ResourceId(id.0)))
            .collect();
        names.sort_unstable();
        names.truncate(limit as usize);
        Ok(names)
    }

    async fn dependents(
        &self,
        upstream: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let tables = self.tables();
        let from = Bound::Excluded((upstream, after.unwrap_or(NIL)));
        let edges = tables.edges.range((from, Bound::Unbounded)).take_while(|(of, _)| *of == upstream);
        Ok(edges.take(limit as usize).map(|(_, dependent)| *dependent).collect())
    }

    async fn children(
        &self,
        parent: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let tables = self.tables();
        let from = Bound::Excluded((parent, after.unwrap_or(NIL)));
        let children = tables.children.range((from, Bound::Unbounded)).take_while(|(of, _)| *of == parent);
        Ok(children.take(limit as usize).map(|(_, id)| *id).collect())
    }

    async fn held(&self, ids: &[ResourceId]) -> Result<Vec<Held>, StoreError> {
        let tables = self.tables();
        let has = |pairs: &BTreeSet<(ResourceId, ResourceId)>, id: ResourceId| {
            pairs
                .range((Bound::Excluded((id, NIL)), Bound::Unbounded))
                .next()
                .is_some_and(|(of, _)| *of == id)
        };
        let held = |id: &ResourceId| Held {
            id: *id,
            by_dependents: has(&tables.edges, *id),
            by_children: has(&tables.children, *id),
        };
        Ok(ids.iter().map(held).collect())
    }

    async fn children_summary(&self, parent: ResourceId) -> Result<ChildrenSummary, StoreError> {
        const DROPPED_MAX: usize = 1000;
        let tables = self.tables();
        let of =
            |wanted| tables.child_rows(parent).filter(move |(_, mark)| *mark == wanted).map(|(id, _)| id);
        Ok(ChildrenSummary {
            open: of(ChildMark::Open).next(),
            impaired: of(ChildMark::Impaired).next(),
            dropped: of(ChildMark::Dropped).take(DROPPED_MAX).collect(),
        })
    }

    async fn children_digest(&self, parent: ResourceId) -> Result<(u64, String), StoreError> {
        let tables = self.tables();
        let mut hasher = Sha256::new();
        let mut count = 0;
        for (_, id) in tables.children.range((parent, NIL)..).take_while(|(of, _)| *of == parent) {
            let Some(record) = tables.heads.get(&(*id).into()) else { continue };
            if record.standing == Some(Standing::LeftOut) {
                continue;
            }
            hasher.update(id.0.as_bytes());
            hasher.update(record.outward.to_be_bytes());
            count += 1;
        }
        Ok((count, hex::encode(hasher.finalize())))
    }

    async fn unsettled(
        &self,
        after: Option<(ResourceId, ResourceId)>,
        limit: u32,
    ) -> Result<Vec<(ResourceId, ResourceId)>, StoreError> {
        let tables = self.tables();
        let from = Bound::Excluded(after.unwrap_or((NIL, NIL)));
        Ok(tables.child.range((from, Bound::Unbounded)).take(limit as usize).map(|(key, _)| *key).collect())
    }

    async fn queue(
        &self,
        kind: &KindRef,
        cursor: Option<QueueCursor>,
        limit: u32,
    ) -> Result<Vec<QueueRow>, StoreError> {
        let now = self.now_ms();
        let tables = self.tables();
        let (priority, due_at, id) = cursor.unwrap_or((i16::MIN, Timestamp(i64::MIN), NIL));
        let from = Bound::Excluded((kind.clone(), priority, due_at, id));
        let due = tables
            .queue
            .range((from, Bound::Unbounded))
            .take_while(|(of, ..)| of == kind)
            .filter(|(_, _, due_at, _)| *due_at <= now);
        Ok(due
            .take(limit as usize)
            .map(|(kind, priority, due_at, id)| QueueRow {
                id: *id,
                kind: kind.clone(),
                priority: *priority,
                due_at: *due_at,
            })
            .collect())
    }

    async fn due_timers(&self, after: Timestamp, limit: u32) -> Result<Vec<TimerRow>, StoreError> {
        let now = self.now_ms();
        let tables = self.tables();
        let due = tables.timers.range((after.plus_ms(1), NIL)..).take_while(|(due_at, _)| *due_at <= now);
        let mut rows: Vec<TimerRow> = Vec::new();
        for (due_at, id) in due {
            // Ties with the last one are included, so that its instant can serve as the next cursor.
            if rows.len() >= limit as usize && rows.last().is_some_and(|last| last.due_at != *due_at) {
                break;
            }
            rows.push(TimerRow { id: *id, due_at: *due_at });
        }
        Ok(rows)
    }

    async fn next_timer_in_ms(&self, after: Timestamp) -> Result<Option<i64>, StoreError> {
        let now = self.now_ms();
        let tables = self.tables();
        let next = tables.timers.range((after.plus_ms(1), NIL)..).next();
        Ok(next.map(|(due_at, _)| (due_at.0 - now.0).max(0)))
    }

    async fn live_claims(&self, kind: &KindRef) -> Result<u64, StoreError> {
        let tables = self.tables();
        let capped = tables.policies.get(kind).is_some_and(|cap| *cap > 0);
        Ok(tables.claims_of_kind.get(kind).copied().filter(|_| capped).unwrap_or(0))
    }

    async fn claims_of(&self, session: SessionId, limit: u32) -> Result<Vec<ResourceId>, StoreError> {
        let mut tables = self.tables();
        let claims = tables.claims.range((session, NIL)..).take_while(|(of, _)| *of == session);
        let claims: Vec<ResourceId> = claims.take(limit as usize).map(|(_, id)| *id).collect();
        if claims.is_empty() {
            tables.claimants.remove(&session);
        }
        Ok(claims)
    }

    async fn beat(&self, member: &Member) -> Result<Timestamp, StoreError> {
        let now = self.now_ms();
        self.tables().members.insert(member.session, (member.clone(), now));
        Ok(now)
    }

    async fn members(&self) -> Result<Vec<(Member, i64)>, StoreError> {
        let now = self.now_ms();
        Ok(self.tables().members.values().map(|(member, at)| (member.clone(), now.0 - at.0)).collect())
    }

    async fn remove_member(&self, session: SessionId) -> Result<(), StoreError> {
        self.tables().members.remove(&session);
        Ok(())
    }

    async fn dead_sessions(&self, dead_ms: i64) -> Result<Vec<SessionId>, StoreError> {
        let now = self.now_ms();
        let tables = self.tables();
        let dead = |session: &SessionId| {
            tables.members.get(session).is_none_or(|(_, beat_at)| now.0 - beat_at.0 >= dead_ms)
        };
        Ok(tables.claimants.iter().copied().filter(dead).collect())
    }

    async fn stage(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        items: &[StagedItem],
    ) -> Result<(), StoreError> {
        let mut tables = self.tables();
        let staged = tables.staged.entry((root, claim_id)).or_default();
        staged.extend(items.iter().map(|item| (item.ordinal, item.clone())));
        Ok(())
    }

    async fn staged(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StagedItem>, StoreError> {
        let tables = self.tables();
        let Some(staged) = tables.staged.get(&(root, claim_id)) else { return Ok(Vec::new()) };
        let items = staged.range((Bound::Excluded(after), Bound::Unbounded));
        Ok(items.take(limit as usize).map(|(_, item)| item.clone()).collect())
    }

    async fn staged_at(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        ordinals: &[i64],
    ) -> Result<Vec<StagedItem>, StoreError> {
        let tables = self.tables();
        let Some(staged) = tables.staged.get(&(root, claim_id)) else { return Ok(Vec::new()) };
        let wanted: BTreeSet<i64> = ordinals.iter().copied().collect();
        Ok(wanted.iter().filter_map(|ordinal| staged.get(ordinal)).cloned().collect())
    }

    async fn unstage(&self, root: ResourceId, claim_id: ClaimId) -> Result<(), StoreError> {
        self.tables().staged.remove(&(root, claim_id));
        Ok(())
    }
}
