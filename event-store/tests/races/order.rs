//! Positions follow commits, not arrivals.

use crate::support::{Builder, Projector, database, id};
use crate::{append, connect, hold_log_lock, run, store, until_waiting};
use converge_domain::Position;
use converge_event_store::{Log, LogConfig, Store};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn the_writer_that_commits_first_comes_first_and_readers_see_both_in_order() {
    let database = database().await;
    let (early, late) = (store(&database).await, store(&database).await);
    let mut stop = connect(&database).await;
    let mut watch = connect(&database).await;
    let (a, b) = (id(), id());
    early.append(&Builder::default().write(0, a, 0).batch).await.unwrap();
    let log = Log::start(
        late.clone(),
        Arc::new(Projector),
        LogConfig { poll_interval: std::time::Duration::from_millis(50), ..LogConfig::default() },
    );
    let log = log.await.unwrap();
    let mut follower = log.tail().follow(Position(0));
    assert_eq!(follower.next().await.unwrap().len(), 1);

    run(&mut stop, &format!("BEGIN; SELECT 1 FROM converge.head WHERE id = '{}' FOR UPDATE", a.0)).await;
    let first_to_arrive = append(&early, Builder::default().write(0, a, 1).batch);
    until_waiting(&mut watch, 1).await;
    let second = late.append(&Builder::default().write(0, b, 0).batch).await.unwrap();
    assert_eq!(second.first, Position(2));
    // A read in between: there is no hole for the one that is under way.
    let seen = follower.next().await.unwrap();
    assert_eq!((seen[0].position, seen[0].aggregate_id), (Position(2), b));
    run(&mut stop, "COMMIT").await;
    assert_eq!(first_to_arrive.await.unwrap().unwrap().first, Position(3));
    let seen = follower.next().await.unwrap();
    assert_eq!((seen[0].position, seen[0].aggregate_id), (Position(3), a));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_idle_in_a_transaction_stalls_nobody() {
    let database = database().await;
    let store = store(&database).await;
    let mut idle = connect(&database).await;
    store.append(&Builder::default().write(0, id(), 0).batch).await.unwrap();
    // It has a transaction id and a snapshot, and never ends.
    run(
        &mut idle,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id(); SELECT * FROM converge.events",
    )
    .await;
    let log = Log::start(store.clone(), Arc::new(Projector), LogConfig::default()).await.unwrap();
    let mut follower = log.tail().follow(Position(0));
    assert_eq!(follower.next().await.unwrap().len(), 1);
    for n in 2..=5 {
        let declare = crate::support::declare(&n.to_string(), 1);
        let committed = log.execute(crate::support::group(vec![(id(), declare)])).await.unwrap();
        assert_eq!(committed.position, Position(n));
        assert_eq!(follower.next().await.unwrap()[0].position, Position(n));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_released_together_give_contiguous_positions() {
    let database = database().await;
    let stores = [store(&database).await, store(&database).await];
    let mut stop = connect(&database).await;
    let mut watch = connect(&database).await;
    hold_log_lock(&mut stop).await;
    let mut appends = Vec::new();
    for n in 0..6 {
        let batch = (0..n + 1).fold(Builder::default(), |batch, unit| batch.write(unit, id(), 0)).batch;
        appends.push(append(&stores[n as usize % 2], batch));
    }
    until_waiting(&mut watch, 6).await;
    run(&mut stop, "COMMIT").await;
    let mut ranges = Vec::new();
    for append in appends {
        let appended = append.await.unwrap().unwrap();
        ranges.push((appended.first.0, appended.count));
    }
    ranges.sort_unstable();
    let mut next = 1;
    for (first, count) in ranges {
        assert_eq!(first, next);
        next += count;
    }
    assert_eq!(next, 22);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_default_isolation_is_another_makes_no_difference() {
    let database = database().await;
    let mut admin = connect(&database).await;
    let name = database.name();
    run(&mut admin, &format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'"))
        .await;
    let other = store(&database).await;
    other.append(&Builder::default().write(0, id(), 0).batch).await.unwrap();
}
