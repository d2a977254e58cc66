//! Reading the log and the inline tables; each method is one statement, but for the two that say otherwise.

use super::errors::classify;
use super::{PgStore, run};
use crate::rows::{QueueRow, TimerRow};
use crate::store::{
    ChildrenSummary, Head, Held, LogHead, QueueCursor, StagedItem, StagedPart, StoreError, StoredEvent,
};
use converge_domain::{
    AggregateId, AggregateType, KindRef, Position, ResourceId, ResourceRef, Sequence, Timestamp,
};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

fn column<'r, T>(row: &'r PgRow, name: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    row.try_get(name).map_err(|error| classify(&error))
}

fn resource_ids(rows: &[PgRow]) -> Result<Vec<ResourceId>, StoreError> {
    rows.iter().map(|row| column(row, "id").map(ResourceId)).collect()
}

fn resources(ids: Option<ResourceId>) -> Uuid {
    ids.map_or(Uuid::nil(), |id| id.0)
}

fn bigint(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn smallint(kind: &KindRef) -> Result<i16, StoreError> {
    i16::try_from(kind.kind_version).map_err(|_| StoreError::Data("kind version out of range".to_owned()))
}

impl PgStore {
    pub(super) async fn end_of_log(&self) -> Result<LogHead, StoreError> {
        let rows = run(sqlx::query(include_str!("sql/log_head.sql")).fetch_all(&self.pool)).await?;
        let Some(row) = rows.first() else {
            return Ok(LogHead { position: Position(0), chain: vec![0; 32], committed_at: None });
        };
        Ok(LogHead {
            position: Position(column::<i64>(row, "position")?.unsigned_abs()),
            chain: column(row, "chain")?,
            committed_at: Some(Timestamp(column(row, "committed_at")?)),
        })
    }

    /// Two statements: events, then the batches they came in. Both are only ever inserted, and become visible
    /// together, so the second statement sees every batch of the first one's events.
    pub(super) async fn log_after(
        &self,
        after: Position,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let query =
            sqlx::query(include_str!("sql/read_log.sql")).bind(bigint(after.0)).bind(i64::from(limit));
        let rows = run(query.fetch_all(&self.pool)).await?;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(Vec::new()) };
        let query = sqlx::query(include_str!("sql/read_batches.sql"))
            .bind(column::<i64>(first, "position")?)
            .bind(column::<i64>(last, "position")?);
        let mut batches = Vec::new();
        for row in run(query.fetch_all(&self.pool)).await? {
            batches.push((column::<i64>(&row, "first_position")?, column::<i64>(&row, "committed_at")?));
        }
        let mut events = Vec::with_capacity(rows.len());
        let mut batch = 0;
        for row in &rows {
            let position: i64 = column(row, "position")?;
            while batches.get(batch + 1).is_some_and(|(first, _)| *first <= position) {
                batch += 1;
            }
            let at = batches.get(batch).filter(|(first, _)| *first <= position);
            let at = at.ok_or_else(|| StoreError::Corrupt(format!("position {position} is in no batch")))?.1;
            events.push(self.decode_event(row, Timestamp(at))?);
        }
        Ok(events)
    }

    /// Two statements: the positions that bound the stream, then its events. A stream that grows in between is cut
    /// at the earlier end, which is a correct answer of that moment.
    pub(super) async fn stream(
        &self,
        id: AggregateId,
        after: Sequence,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let bounds = sqlx::query(include_str!("sql/stream_bounds.sql")).bind(id.0);
        let (low, high) = match run(bounds.fetch_all(&self.pool)).await?.first() {
            Some(row) => (column(row, "low")?, column(row, "high")?),
            // Deleted or never there: every partition has to be asked.
            None => (0_i64, i64::MAX),
        };
        let query = sqlx::query(include_str!("sql/read_stream.sql"))
            .bind(id.0)
            .bind(bigint(after.0))
            .bind(i64::from(limit))
            .bind(low)
            .bind(high);
        let rows = run(query.fetch_all(&self.pool)).await?;
        rows.iter().map(|row| self.decode_event(row, Timestamp(column(row, "committed_at")?))).collect()
    }

    pub(super) async fn beginnings(
        &self,
        streams: &[(AggregateId, Sequence)],
        before: Position,
        each: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let (ids, ends): (Vec<Uuid>, Vec<i64>) =
            streams.iter().map(|(id, end)| (id.0, bigint(end.0))).unzip();
        let query = sqlx::query(include_str!("sql/read_beginnings.sql"))
            .bind(ids)
            .bind(ends)
            .bind(bigint(before.0))
            .bind(i64::from(each));
        let rows = run(query.fetch_all(&self.pool)).await?;
        rows.iter().map(|row| self.decode_event(row, Timestamp(column(row, "committed_at")?))).collect()
    }

    pub(super) async fn database_now(&self) -> Result<Timestamp, StoreError> {
        let query = sqlx::query_scalar(include_str!("sql/now.sql"));
        query.fetch_one(&self.pool).await.map(Timestamp).map_err(|error| classify(&error))
    }

    pub(super) async fn heads_by_id(&self, ids: &[AggregateId]) -> Result<Vec<Head>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = run(sqlx::query(include_str!("sql/heads.sql")).bind(ids).fetch_all(&self.pool)).await?;
        self.decode_heads(&rows).await
    }

    pub(super) async fn heads_by_type(&self, of: AggregateType) -> Result<Vec<Head>, StoreError> {
        let query = sqlx::query(include_str!("sql/heads_of_type.sql")).bind(of.as_str());
        let rows = run(query.fetch_all(&self.pool)).await?;
        self.decode_heads(&rows).await
    }

    async fn decode_heads(&self, rows: &[PgRow]) -> Result<Vec<Head>, StoreError> {
        let mut heads = Vec::with_capacity(rows.len());
        for row in rows {
            heads.push(self.decode_head(row).await?);
        }
        Ok(heads)
    }

    pub(super) async fn holders(
        &self,
        names: &[ResourceRef],
    ) -> Result<Vec<(ResourceRef, AggregateId)>, StoreError> {
        let kinds: Vec<&str> = names.iter().map(|name| name.kind.as_str()).collect();
        let words: Vec<&str> = names.iter().map(|name| name.name.as_str()).collect();
        let query = sqlx::query(include_str!("sql/names.sql")).bind(kinds).bind(words);
        let rows = run(query.fetch_all(&self.pool)).await?;
        rows.iter()
            .map(|row| {
                let name = ResourceRef::new(column::<String>(row, "kind")?, column::<String>(row, "name")?);
                Ok((name, AggregateId(column(row, "id")?)))
            })
            .collect()
    }

    pub(super) async fn bearers_of_kind(
        &self,
        kind: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(String, ResourceId)>, StoreError> {
        let query = sqlx::query(include_str!("sql/names_of_kind.sql"));
        let rows = run(query.bind(kind).bind(after).bind(i64::from(limit)).fetch_all(&self.pool)).await?;
        rows.iter().map(|row| Ok((column(row, "name")?, ResourceId(column(row, "id")?)))).collect()
    }

    pub(super) async fn dependents_of(
        &self,
        upstream: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let query = sqlx::query(include_str!("sql/dependents.sql"));
        let query = query.bind(upstream.0).bind(resources(after)).bind(i64::from(limit));
        resource_ids(&run(query.fetch_all(&self.pool)).await?)
    }

    pub(super) async fn dependents_of_many(
        &self,
        upstreams: &[ResourceId],
        limit: u32,
    ) -> Result<Vec<(ResourceId, ResourceId)>, StoreError> {
        let upstreams: Vec<Uuid> = upstreams.iter().map(|id| id.0).collect();
        let query = sqlx::query(include_str!("sql/dependents_many.sql"));
        let rows = run(query.bind(upstreams).bind(i64::from(limit)).fetch_all(&self.pool)).await?;
        rows.iter()
            .map(|row| {
                let upstream: Uuid = row.try_get("upstream").map_err(|error| classify(&error))?;
                let dependent: Uuid = row.try_get("dependent").map_err(|error| classify(&error))?;
                Ok((ResourceId(upstream), ResourceId(dependent)))
            })
            .collect()
    }

    pub(super) async fn held_back(&self, ids: &[ResourceId]) -> Result<Vec<Held>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = run(sqlx::query(include_str!("sql/held.sql")).bind(ids).fetch_all(&self.pool)).await?;
        let held = |row: &PgRow| {
            Ok(Held {
                id: ResourceId(column(row, "id")?),
                by_dependents: column(row, "by_dependents")?,
                by_children: column(row, "by_children")?,
            })
        };
        rows.iter().map(held).collect()
    }

    pub(super) async fn children_of(
        &self,
        parent: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let query = sqlx::query(include_str!("sql/children.sql"));
        let query = query.bind(parent.0).bind(resources(after)).bind(i64::from(limit));
        resource_ids(&run(query.fetch_all(&self.pool)).await?)
    }

    pub(super) async fn witnesses(&self, parent: ResourceId) -> Result<ChildrenSummary, StoreError> {
        let query = sqlx::query(include_str!("sql/children_summary.sql")).bind(parent.0);
        let mut summary = ChildrenSummary::default();
        for row in run(query.fetch_all(&self.pool)).await? {
            let id = ResourceId(column(&row, "id")?);
            match column::<i16>(&row, "mark")? {
                1 => summary.open = Some(id),
                2 => summary.impaired = Some(id),
                _ => summary.dropped.push(id),
            }
        }
        Ok(summary)
    }

    pub(super) async fn digest_of_children(&self, parent: ResourceId) -> Result<(u64, String), StoreError> {
        let query = sqlx::query(include_str!("sql/children_digest.sql")).bind(parent.0);
        let row = query.fetch_one(&self.pool).await.map_err(|error| classify(&error))?;
        Ok((column::<i64>(&row, "count")?.unsigned_abs(), column(&row, "digest")?))
    }

    pub(super) async fn child_rows(
        &self,
        after: Option<(ResourceId, ResourceId)>,
        limit: u32,
    ) -> Result<Vec<(ResourceId, ResourceId)>, StoreError> {
        // Nobody has the nil id, so (nil, nil) is before every row, those under the nil parent included.
        let (parent, id) = after.map_or((Uuid::nil(), Uuid::nil()), |(parent, id)| (parent.0, id.0));
        let query =
            sqlx::query(include_str!("sql/unsettled.sql")).bind(parent).bind(id).bind(i64::from(limit));
        let rows = run(query.fetch_all(&self.pool)).await?;
        rows.iter()
            .map(|row| Ok((ResourceId(column(row, "parent")?), ResourceId(column(row, "id")?))))
            .collect()
    }

    pub(super) async fn due_work(
        &self,
        kind: &KindRef,
        cursor: Option<QueueCursor>,
        limit: u32,
    ) -> Result<Vec<QueueRow>, StoreError> {
        let (priority, due_at, id) = cursor.unwrap_or((0, Timestamp(i64::MIN), ResourceId(Uuid::nil())));
        let query = sqlx::query(include_str!("sql/queue.sql"))
            .bind(&kind.kind)
            .bind(smallint(kind)?)
            .bind(i32::from(priority))
            .bind(due_at.0)
            .bind(id.0)
            .bind(i64::from(limit));
        let rows = run(query.fetch_all(&self.pool)).await?;
        rows.iter()
            .map(|row| {
                Ok(QueueRow {
                    id: ResourceId(column(row, "id")?),
                    kind: kind.clone(),
                    priority: column(row, "priority")?,
                    due_at: Timestamp(column(row, "due_at")?),
                })
            })
            .collect()
    }

    pub(super) async fn timers_after(
        &self,
        after: Timestamp,
        limit: u32,
    ) -> Result<Vec<TimerRow>, StoreError> {
        let query = sqlx::query(include_str!("sql/due_timers.sql")).bind(after.0).bind(i64::from(limit));
        let rows = run(query.fetch_all(&self.pool)).await?;
        rows.iter()
            .map(|row| {
                Ok(TimerRow { id: ResourceId(column(row, "id")?), due_at: Timestamp(column(row, "due_at")?) })
            })
            .collect()
    }

    pub(super) async fn ms_until_timer(&self, after: Timestamp) -> Result<Option<i64>, StoreError> {
        let query = sqlx::query_scalar(include_str!("sql/next_timer.sql")).bind(after.0);
        query.fetch_optional(&self.pool).await.map_err(|error| classify(&error))
    }

    pub(super) async fn items(
        &self,
        root: ResourceId,
        claim: Uuid,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StagedItem>, StoreError> {
        let query = sqlx::query(include_str!("sql/staged.sql"));
        let query = query.bind(root.0).bind(claim).bind(after).bind(i64::from(limit));
        run(query.fetch_all(&self.pool)).await?.iter().map(item).collect()
    }

    pub(super) async fn items_at(
        &self,
        root: ResourceId,
        claim: Uuid,
        ordinals: &[i64],
    ) -> Result<Vec<StagedItem>, StoreError> {
        let query = sqlx::query(include_str!("sql/staged_at.sql"));
        let query = query.bind(root.0).bind(claim).bind(ordinals);
        run(query.fetch_all(&self.pool)).await?.iter().map(item).collect()
    }
}

fn item(row: &PgRow) -> Result<StagedItem, StoreError> {
    let part = match column::<i16>(row, "part")? {
        1 => StagedPart::Child,
        2 => StagedPart::Edge,
        3 => StagedPart::Config,
        code => return Err(StoreError::Corrupt(format!("unknown staged part {code}"))),
    };
    Ok(StagedItem { ordinal: column(row, "ordinal")?, part, payload: column(row, "payload")? })
}
