//! Many writers at once, on both stores.

use crate::support::{declare, group, id, pg_store};
use crate::{log, memory};
use converge_domain::{AggregateId, Position};
use converge_event_store::{ExecuteError, Store};
use std::sync::Arc;

/// A thousand commands to few aggregates from two processes: whatever is reported as done is in the log, and
/// nothing else is.
async fn a_thousand_racing_conflicts(store: Arc<dyn Store>) {
    let processes = [log(&store).await, log(&store).await];
    let aggregates: Vec<AggregateId> = (0..10).map(|_| id()).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..1000_u64 {
        let log = processes[usize::try_from(n % 2).unwrap()].clone();
        let at = usize::try_from(n % 10).unwrap();
        let target = aggregates[at];
        tasks.spawn(
            async move { log.execute(group(vec![(target, declare(&format!("name-{at}"), n))])).await },
        );
    }
    let mut done = 0;
    while let Some(result) = tasks.join_next().await {
        match result.unwrap() {
            Ok(committed) => done += committed.steps[0].events.len() as u64,
            Err(ExecuteError::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let events = store.read(Position(0), 2000).await.unwrap();
    let positions: Vec<u64> = events.iter().map(|event| event.position.0).collect();
    assert_eq!(positions, (1..=done).collect::<Vec<u64>>());
    let heads = store.heads(&aggregates).await.unwrap();
    assert_eq!(heads.iter().map(|head| head.sequence.0).sum::<u64>(), done);
    for process in processes {
        process.tail().wait_for(Position(done)).await.unwrap();
        assert_eq!(process.tail().head(), Position(done));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reported_successes_equal_the_rows_in_memory() {
    let (_, store) = memory();
    a_thousand_racing_conflicts(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reported_successes_equal_the_rows_in_postgres() {
    let (_database, store) = pg_store().await;
    a_thousand_racing_conflicts(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_over_shared_aggregates_in_opposite_orders_all_end() {
    let (_database, store) = pg_store().await;
    let store: Arc<dyn Store> = store;
    let processes = [log(&store).await, log(&store).await];
    let ids: Vec<AggregateId> = (0..6).map(|_| id()).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..120_u64 {
        let log = processes[usize::try_from(n % 2).unwrap()].clone();
        let mut steps: Vec<_> =
            ids.iter().enumerate().map(|(at, id)| (*id, declare(&format!("n{at}"), n))).collect();
        if n % 2 == 0 {
            steps.reverse();
        }
        tasks.spawn(async move { log.execute(group(steps)).await });
    }
    let mut done = 0;
    while let Some(result) = tasks.join_next().await {
        match result.unwrap() {
            Ok(_) => done += 1,
            Err(ExecuteError::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(store.log_head().await.unwrap().position, Position(done * 6));
}
