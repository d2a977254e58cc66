//! Processes and backends that stop in the middle of an append.

use crate::support::{Builder, Projector, database, declare, group, id};
use crate::{append, connect, hold_log_lock, run, store, until, until_waiting};
use converge_domain::Position;
use converge_event_store::{Log, LogConfig, Store, StoreError};
use std::sync::Arc;

const KILL_WAITING: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%converge.append%'";

#[tokio::test(flavor = "multi_thread")]
async fn an_append_whose_backend_is_killed_is_unknown_until_looked_up() {
    let database = database().await;
    let store = store(&database).await;
    let (mut stop, mut watch) = (connect(&database).await, connect(&database).await);
    hold_log_lock(&mut stop).await;
    let batch = Builder::default().write(0, id(), 0).batch;
    let killed = append(&store, batch.clone());
    until_waiting(&mut watch, 1).await;
    run(&mut watch, KILL_WAITING).await;
    assert!(matches!(killed.await.unwrap(), Err(StoreError::OutcomeUnknown(id)) if id == batch.batch_id));
    run(&mut stop, "COMMIT").await;
    assert_eq!(store.find_batch(batch.batch_id).await.unwrap(), None);
    // Others go on.
    let next = store.append(&Builder::default().write(0, id(), 0).batch).await.unwrap();
    assert_eq!(next.first, Position(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_outlives_its_client_cannot_commit_a_batch_called_lost() {
    let database = database().await;
    let store = store(&database).await;
    let (mut stop, mut watch) = (connect(&database).await, connect(&database).await);
    let a = id();
    store.append(&Builder::default().write(0, a, 0).batch).await.unwrap();
    run(&mut stop, &format!("BEGIN; SELECT 1 FROM converge.head WHERE id = '{}' FOR UPDATE", a.0)).await;
    let batch = Builder::default().write(0, a, 1).batch;
    let abandoned = append(&store, batch.clone());
    until_waiting(&mut watch, 1).await;
    // The client dies; its backend waits on for the head, far from the log lock.
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    until_waiting(&mut watch, 1).await;
    assert_eq!(store.find_batch(batch.batch_id).await.unwrap(), None);
    run(&mut stop, "COMMIT").await;
    until_waiting(&mut watch, 0).await;
    until(&mut watch, 0, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE '%converge.append%' AND pid <> pg_backend_pid()").await;
    assert_eq!(store.log_head().await.unwrap().position, Position(1));
    let heads = store.heads(&[a]).await.unwrap();
    assert_eq!(heads[0].sequence.0, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_do_not_notice_that_their_backend_was_killed() {
    let database = database().await;
    let store = store(&database).await;
    let (mut stop, mut watch) = (connect(&database).await, connect(&database).await);
    let log = Log::start(store.clone(), Arc::new(Projector), LogConfig::default()).await.unwrap();
    hold_log_lock(&mut stop).await;
    let answer = log.submit(group(vec![(id(), declare("a", 1))])).unwrap();
    until_waiting(&mut watch, 1).await;
    run(&mut watch, KILL_WAITING).await;
    run(&mut stop, "COMMIT").await;
    assert_eq!(answer.await.unwrap().unwrap().position, Position(1));
    assert_eq!(store.log_head().await.unwrap().position, Position(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_cancelled_at_any_await_leaves_no_transaction_open() {
    let database = database().await;
    let store = store(&database).await;
    for polls in 0..40 {
        let batch = Builder::default().write(0, id(), 0).batch;
        let mut call = Box::pin(store.append(&batch));
        for _ in 0..polls {
            if futures::poll!(&mut call).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(call);
        let mut read = Box::pin(store.read(Position(0), 10));
        for _ in 0..polls {
            if futures::poll!(&mut read).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let mut watch = connect(&database).await;
    until(&mut watch, 0, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND (state LIKE 'idle in transaction%' OR (state = 'active' AND query LIKE '%converge.%'))").await;
    // Whatever came of them, the log is whole and goes on.
    let next = store.append(&Builder::default().write(0, id(), 0).batch).await.unwrap();
    let events = store.read(Position(0), 1000).await.unwrap();
    assert_eq!(events.len() as u64, next.first.0);
}
