//! The append call and the look-up of its outcome.

use super::columns::Columns;
use super::errors::{HEAD_MOVED, PARTITION_FULL, classify, classify_append, sqlstate};
use super::{APPENDERS_IDLE_MAX, PgStore, run};
use crate::store::{Appended, Batch, ConflictKind, StoreError, UnitConflict};
use converge_domain::{BatchId, Position, Timestamp};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions, PgConnection, Postgres, Row};
use std::sync::atomic::Ordering;

impl PgStore {
    /// Writes `batch` in one server call.
    ///
    /// In two, where a head moved between its read and its update in a batch that sent no locks: the first call wrote
    /// nothing then, and the second locks first, so that it can tell the units that lost from the others.
    pub(super) async fn append_batch(&self, batch: &Batch) -> Result<Appended, StoreError> {
        match self.append_once(batch, false).await {
            Err(Failed::Moved) => self.append_once(batch, true).await.map_err(|failed| match failed {
                Failed::Moved => StoreError::Retry("a head moved though it was locked".to_owned()),
                Failed::Store(error) => error,
            }),
            Err(Failed::Store(error)) => Err(error),
            Ok(appended) => Ok(appended),
        }
    }

    async fn append_once(&self, batch: &Batch, lock: bool) -> Result<Appended, Failed> {
        let columns = Columns::encode(batch, self.codec.as_ref(), lock)?;
        let mut connection = self.appender().await?;
        // Past this point a failure may hide a commit.
        //
        // `fetch_all` and not `fetch_one`: in the extended protocol the server commits at Sync, *after* it has sent
        // the row. `fetch_one` returns with the row, `fetch_all` with ReadyForQuery, that is, after the commit.
        match bind(sqlx::query(include_str!("sql/append.sql")), batch.batch_id, columns)
            .fetch_all(&mut connection)
            .await
        {
            Ok(rows) => {
                self.give_back(connection);
                let row = rows.first().ok_or_else(|| StoreError::Corrupt("append returned no row".into()))?;
                let appended = decode_appended(row).map_err(|error| classify(&error))?;
                self.mind_partitions(appended.first.0 + appended.count).await;
                Ok(appended)
            }
            Err(error) => {
                let code = sqlstate(&error);
                let error = classify_append(&error, batch.batch_id);
                if !matches!(error, StoreError::OutcomeUnknown(_)) {
                    self.give_back(connection);
                }
                match code.as_deref() {
                    Some(HEAD_MOVED) => return Err(Failed::Moved),
                    Some(PARTITION_FULL) => self.ensure_partition().await?,
                    _ => {}
                }
                Err(error.into())
            }
        }
    }

    /// Resolves an unknown outcome; see `migrations/0003_find_batch.sql` for why its answer is final.
    pub(super) async fn look_up_batch(&self, batch_id: BatchId) -> Result<Option<Appended>, StoreError> {
        let mut connection = self.appender().await?;
        let query = sqlx::query(include_str!("sql/find_batch.sql")).bind(batch_id.0);
        let rows = query.fetch_all(&mut connection).await.map_err(|error| classify(&error))?;
        self.give_back(connection);
        let Some(row) = rows.first() else { return Ok(None) };
        let (first, count, at) = decode_place(row).map_err(|error| classify(&error))?;
        Ok(Some(Appended { first, count, committed_at: at, conflicts: Vec::new() }))
    }

    /// A connection for one append call. They are kept apart from the pool of readers: a burst of reads must not keep an
    /// append waiting, and a pool's ping on every return would double the round trips. A call that is cancelled or
    /// fails drops its connection, so none ever comes back with a transaction open.
    async fn appender(&self) -> Result<PgConnection, StoreError> {
        let idle = self.appenders.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        if let Some(connection) = idle {
            return Ok(connection);
        }
        let connect = self.append_options.connect();
        match tokio::time::timeout(self.options.connect_timeout, connect).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(StoreError::Unavailable(error.to_string())),
            Err(_) => Err(StoreError::Unavailable("connecting took too long".to_owned())),
        }
    }

    fn give_back(&self, connection: PgConnection) {
        let mut idle = self.appenders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if idle.len() < APPENDERS_IDLE_MAX {
            idle.push(connection);
        }
    }

    /// Builds the next partition once the last one is 80 % full. Appends go on meanwhile; one caller pays for the
    /// call, once per ten million events.
    async fn mind_partitions(&self, position: u64) {
        let last = self.last_partitioned.load(Ordering::Relaxed);
        let ahead = self.options.partition_size / 5;
        if position.saturating_add(ahead) <= last {
            return;
        }
        if let Err(error) = self.ensure_partition().await {
            // Not urgent: a fifth of a partition is left, and the next append tries again.
            tracing::warn!(%error, "the next partition of the log could not be built");
        }
    }

    pub(super) async fn ensure_partition(&self) -> Result<(), StoreError> {
        let size = i64::try_from(self.options.partition_size).unwrap_or(i64::MAX);
        let query = sqlx::query(include_str!("sql/ensure_partition.sql")).bind(size / 5 + 1).bind(size);
        let rows = run(query.fetch_all(&self.pool)).await?;
        let last: i64 = match rows.first() {
            Some(row) => row.try_get("last").map_err(|error| classify(&error))?,
            None => 0,
        };
        self.last_partitioned.store(last.unsigned_abs(), Ordering::Relaxed);
        Ok(())
    }
}

/// Why a call did not write.
enum Failed {
    /// A head moved between its read and its update.
    Moved,
    Store(StoreError),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Binds in the order of the function's parameters.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    batch_id: BatchId,
    columns: Columns<'q>,
) -> Query<'q, Postgres, PgArguments> {
    let Columns { units, sessions, locks, cap_kind, cap_version, new, old, has, .. } = columns;
    let Columns { taken, freed, linked, cut, policies, guards, .. } = columns;
    let Columns { capped_unit, capped_index, command_unit, command_id, events, .. } = columns;
    query
        .bind(batch_id.0)
        .bind(units)
        .bind(sessions)
        .bind(cap_kind)
        .bind(cap_version)
        .bind(locks.ids)
        .bind(locks.run_ends)
        .bind(locks.run_exclusive)
        .bind(new.stored.unit)
        .bind(new.stored.id)
        .bind(new.aggregate_type)
        .bind(new.stored.sequence)
        .bind(new.stored.kind)
        .bind(new.stored.kind_version)
        .bind(new.name)
        .bind(new.parent)
        .bind(new.stored.phase)
        .bind(new.stored.standing)
        .bind(new.stored.subtree)
        .bind(new.stored.pass_id)
        .bind(new.stored.outward)
        .bind(new.stored.state)
        .bind(new.narrow.queue_version)
        .bind(new.narrow.queue_priority)
        .bind(new.narrow.queue_due_at)
        .bind(new.narrow.timer_due_at)
        .bind(new.narrow.child_mark)
        .bind(new.narrow.child_parent)
        .bind(new.narrow.claim_version)
        .bind(new.narrow.claim_session)
        .bind(old.stored.unit)
        .bind(old.stored.id)
        .bind(old.expected)
        .bind(old.stored.sequence)
        .bind(old.stored.kind)
        .bind(old.stored.kind_version)
        .bind(old.stored.phase)
        .bind(old.stored.standing)
        .bind(old.stored.subtree)
        .bind(old.stored.pass_id)
        .bind(old.stored.outward)
        .bind(old.stored.state)
        .bind(old.removed)
        .bind(old.queue_op)
        .bind(old.narrow.queue_version)
        .bind(old.narrow.queue_priority)
        .bind(old.narrow.queue_due_at)
        .bind(old.timer_op)
        .bind(old.narrow.timer_due_at)
        .bind(old.child_op)
        .bind(old.narrow.child_mark)
        .bind(old.narrow.child_parent)
        .bind(old.claim_op)
        .bind(old.narrow.claim_version)
        .bind(old.narrow.claim_session)
        .bind(has)
        .bind(taken.unit)
        .bind(taken.kind)
        .bind(taken.name)
        .bind(taken.id)
        .bind(freed.unit)
        .bind(freed.kind)
        .bind(freed.name)
        .bind(freed.id)
        .bind(linked.unit)
        .bind(linked.dependent)
        .bind(linked.upstream)
        .bind(cut.unit)
        .bind(cut.dependent)
        .bind(cut.upstream)
        .bind(policies.unit)
        .bind(policies.kind)
        .bind(policies.kind_version)
        .bind(policies.max_inflight)
        .bind(guards.unit)
        .bind(guards.code)
        .bind(guards.id)
        .bind(guards.sequence)
        .bind(guards.pass_id)
        .bind(guards.standing)
        .bind(capped_unit)
        .bind(capped_index)
        .bind(command_unit)
        .bind(command_id)
        .bind(events.unit)
        .bind(events.aggregate_type)
        .bind(events.aggregate_id)
        .bind(events.sequence)
        .bind(events.event_type)
        .bind(events.event_version)
        .bind(events.payload)
        .bind(events.metadata)
        .bind(events.digests)
}

fn decode_place(row: &PgRow) -> Result<(Position, u64, Timestamp), sqlx::Error> {
    let first: i64 = row.try_get("first_position")?;
    let count: i32 = row.try_get("event_count")?;
    let at_us: i64 = row.try_get("committed_at_us")?;
    Ok((Position(first.unsigned_abs()), u64::from(count.unsigned_abs()), Timestamp(at_us.div_euclid(1000))))
}

fn decode_appended(row: &PgRow) -> Result<Appended, sqlx::Error> {
    let (first, count, committed_at) = decode_place(row)?;
    let units: Vec<i32> = row.try_get("conflict_unit")?;
    let codes: Vec<i16> = row.try_get("conflict_code")?;
    let conflicts = units
        .into_iter()
        .zip(codes)
        .map(|(unit, code)| UnitConflict { unit: (unit - 1).unsigned_abs(), kind: conflict_kind(code) })
        .collect();
    Ok(Appended { first, count, committed_at, conflicts })
}

/// The codes are those of the checks in `append`.
const fn conflict_kind(code: i16) -> ConflictKind {
    match code {
        1 => ConflictKind::Duplicate,
        2 => ConflictKind::Head,
        4 => ConflictKind::Name,
        _ => ConflictKind::Guard,
    }
}
