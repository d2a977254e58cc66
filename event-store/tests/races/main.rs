//! Races on PostgreSQL, with the order forced at named points: a row lock or the log lock held by the test stops
//! an append where it stands, and `pg_stat_activity` tells when it got there. No sleep decides anything.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod chain;
mod claims;
mod cutoff;
mod heads;
mod listening;
mod locks;
mod order;
mod partitions;
mod plans;
#[path = "../support/mod.rs"]
mod support;

use converge_event_store::{Appended, Batch, PgOptions, PgStore, Store, StoreError};
use embedded_postgres::testkit::TestDatabase;
use sqlx::{Connection, PgConnection};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The key of the log lock, as in `migrations/0005_append.sql`.
const LOG_LOCK: i64 = 4_850_371_921_000;

async fn connect(database: &TestDatabase) -> PgConnection {
    PgConnection::connect(database.url()).await.unwrap()
}

async fn store(database: &TestDatabase) -> Arc<PgStore> {
    let options = PgOptions { lock_timeout_ms: 60_000, ..support::quiet() };
    Arc::new(PgStore::connect(database.url(), options).await.unwrap())
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

/// Stops every append right before it takes positions.
async fn hold_log_lock(connection: &mut PgConnection) {
    run(connection, &format!("BEGIN; SELECT pg_advisory_xact_lock({LOG_LOCK})")).await;
}

/// Waits until `count` appends of this database are waiting for a lock.
async fn until_waiting(connection: &mut PgConnection, count: i64) {
    until(connection, count, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%converge.append%'").await;
}

/// Waits until a count is `count`.
async fn until(connection: &mut PgConnection, count: i64, sql: &str) {
    let reached = async {
        loop {
            let now: i64 = sqlx::query_scalar(sql).fetch_one(&mut *connection).await.unwrap();
            if now == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect(sql);
}

fn append(store: &Arc<PgStore>, batch: Batch) -> JoinHandle<Result<Appended, StoreError>> {
    let store = store.clone();
    tokio::spawn(async move { store.append(&batch).await })
}
