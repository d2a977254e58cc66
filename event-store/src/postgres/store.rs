//! [`Store`] for PostgreSQL.

use super::errors::classify;
use super::{PgStore, run};
use crate::rows::{QueueRow, TimerRow};
use crate::store::{
    Appended, Batch, ChildrenSummary, Head, Held, LogHead, Member, QueueCursor, StagedItem, StagedPart,
    Store, StoreError, StoredEvent,
};
use async_trait::async_trait;
use converge_domain::{
    AggregateId, AggregateType, BatchId, ClaimId, KindRef, Position, ResourceId, ResourceRef, Sequence,
    SessionId, Timestamp,
};
use sqlx::Row;

#[async_trait]
impl Store for PgStore {
    async fn append(&self, batch: &Batch) -> Result<Appended, StoreError> {
        self.append_batch(batch).await
    }

    async fn find_batch(&self, batch_id: BatchId) -> Result<Option<Appended>, StoreError> {
        self.look_up_batch(batch_id).await
    }

    async fn log_head(&self) -> Result<LogHead, StoreError> {
        self.end_of_log().await
    }

    async fn chain_at(&self, position: Position) -> Result<Option<Vec<u8>>, StoreError> {
        let position = i64::try_from(position.0).unwrap_or(i64::MAX);
        let query = sqlx::query_scalar(include_str!("sql/chain_at.sql")).bind(position);
        query.fetch_optional(&self.pool).await.map_err(|error| classify(&error))
    }

    async fn read(&self, after: Position, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        self.log_after(after, limit).await
    }

    async fn read_stream(
        &self,
        id: AggregateId,
        after: Sequence,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.stream(id, after, limit).await
    }

    async fn read_beginnings(
        &self,
        streams: &[(AggregateId, Sequence)],
        before: Position,
        each: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.beginnings(streams, before, each).await
    }

    async fn appended(&self) -> Result<(), StoreError> {
        self.notified().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.database_now().await
    }

    async fn heads(&self, ids: &[AggregateId]) -> Result<Vec<Head>, StoreError> {
        self.heads_by_id(ids).await
    }

    async fn heads_of_type(&self, aggregate_type: AggregateType) -> Result<Vec<Head>, StoreError> {
        self.heads_by_type(aggregate_type).await
    }

    async fn names(&self, names: &[ResourceRef]) -> Result<Vec<(ResourceRef, AggregateId)>, StoreError> {
        self.holders(names).await
    }

    async fn names_of_kind(
        &self,
        kind: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(String, ResourceId)>, StoreError> {
        self.bearers_of_kind(kind, after, limit).await
    }

    async fn dependents(
        &self,
        upstream: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, StoreError> {
        self.dependents_of(upstream, after, limit).await
    }

    async fn dependents_many(
        &self,
        upstreams: &[ResourceId],
        limit: u32,
    ) -> Result<Vec<(ResourceId, ResourceId)>, StoreError> {
        self.dependents_of_many(upstreams, limit).await
    }

    async fn children(
        &self,
        parent: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, StoreError> {
        self.children_of(parent, after, limit).await
    }

    async fn held(&self, ids: &[ResourceId]) -> Result<Vec<Held>, StoreError> {
        self.held_back(ids).await
    }

    async fn children_summary(&self, parent: ResourceId) -> Result<ChildrenSummary, StoreError> {
        self.witnesses(parent).await
    }

    async fn children_digest(&self, parent: ResourceId) -> Result<(u64, String), StoreError> {
        self.digest_of_children(parent).await
    }

    async fn unsettled(
        &self,
        after: Option<(ResourceId, ResourceId)>,
        limit: u32,
    ) -> Result<Vec<(ResourceId, ResourceId)>, StoreError> {
        self.child_rows(after, limit).await
    }

    async fn queue(
        &self,
        kind: &KindRef,
        cursor: Option<QueueCursor>,
        limit: u32,
    ) -> Result<Vec<QueueRow>, StoreError> {
        self.due_work(kind, cursor, limit).await
    }

    async fn due_timers(&self, after: Timestamp, limit: u32) -> Result<Vec<TimerRow>, StoreError> {
        self.timers_after(after, limit).await
    }

    async fn next_timer_in_ms(&self, after: Timestamp) -> Result<Option<i64>, StoreError> {
        self.ms_until_timer(after).await
    }

    async fn live_claims(&self, kind: &KindRef) -> Result<u64, StoreError> {
        let query = sqlx::query_scalar(include_str!("sql/live_claims.sql"))
            .bind(&kind.kind)
            .bind(i16::try_from(kind.kind_version).unwrap_or(i16::MAX));
        let count: i64 = query.fetch_one(&self.pool).await.map_err(|error| classify(&error))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn claims_of(&self, session: SessionId, limit: u32) -> Result<Vec<ResourceId>, StoreError> {
        let query =
            sqlx::query_scalar(include_str!("sql/claims_of.sql")).bind(session.0).bind(i64::from(limit));
        let ids = query.fetch_all(&self.pool).await.map_err(|error| classify(&error))?;
        Ok(ids.into_iter().map(ResourceId).collect())
    }

    async fn beat(&self, member: &Member) -> Result<Timestamp, StoreError> {
        let query = sqlx::query_scalar(include_str!("sql/beat.sql"))
            .bind(member.session.0)
            .bind(&member.role)
            .bind(&member.host)
            .bind(&member.broker_address)
            .bind(&member.served);
        query.fetch_one(&self.pool).await.map(Timestamp).map_err(|error| classify(&error))
    }

    async fn members(&self) -> Result<Vec<(Member, i64)>, StoreError> {
        let rows = run(sqlx::query(include_str!("sql/members.sql")).fetch_all(&self.pool)).await?;
        let mut members = Vec::with_capacity(rows.len());
        for row in &rows {
            let member = (|| {
                let member = Member {
                    session: SessionId(row.try_get("session")?),
                    role: row.try_get("role")?,
                    host: row.try_get("host")?,
                    broker_address: row.try_get("broker_address")?,
                    served: row.try_get("served")?,
                };
                Ok((member, row.try_get("age")?))
            })();
            members.push(member.map_err(|error| classify(&error))?);
        }
        Ok(members)
    }

    async fn remove_member(&self, session: SessionId) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/remove_member.sql")).bind(session.0);
        query.execute(&self.pool).await.map(drop).map_err(|error| classify(&error))
    }

    async fn dead_sessions(&self, dead_ms: i64) -> Result<Vec<SessionId>, StoreError> {
        let query = sqlx::query_scalar(include_str!("sql/dead_sessions.sql")).bind(dead_ms);
        let ids = query.fetch_all(&self.pool).await.map_err(|error| classify(&error))?;
        Ok(ids.into_iter().map(SessionId).collect())
    }

    async fn stage(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        items: &[StagedItem],
    ) -> Result<(), StoreError> {
        let ordinals: Vec<i64> = items.iter().map(|item| item.ordinal).collect();
        let parts: Vec<i16> = items
            .iter()
            .map(|item| match item.part {
                StagedPart::Child => 1,
                StagedPart::Edge => 2,
                StagedPart::Config => 3,
            })
            .collect();
        let payloads: Vec<&str> = items.iter().map(|item| item.payload.as_str()).collect();
        let query = sqlx::query(include_str!("sql/stage.sql"))
            .bind(root.0)
            .bind(claim_id.0)
            .bind(ordinals)
            .bind(parts)
            .bind(payloads);
        query.execute(&self.pool).await.map(drop).map_err(|error| classify(&error))
    }

    async fn staged(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StagedItem>, StoreError> {
        self.items(root, claim_id.0, after, limit).await
    }

    async fn staged_at(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        ordinals: &[i64],
    ) -> Result<Vec<StagedItem>, StoreError> {
        self.items_at(root, claim_id.0, ordinals).await
    }

    async fn unstage(&self, root: ResourceId, claim_id: ClaimId) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/unstage.sql")).bind(root.0).bind(claim_id.0);
        query.execute(&self.pool).await.map(drop).map_err(|error| classify(&error))
    }
}
