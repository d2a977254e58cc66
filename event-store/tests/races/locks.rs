//! What the locks before the checks are for, and that they never deadlock.

use crate::support::{Builder, database, head, id, resource};
use crate::{append, connect, hold_log_lock, run, store, until_waiting};
use converge_domain::guard::Guard;
use converge_domain::resource::{Phase, Standing};
use converge_domain::{AggregateId, ResourceRef};
use converge_event_store::{Batch, ChildMark, ChildRow, ConflictKind, Store};

fn lost(appended: &converge_event_store::Appended) -> Option<ConflictKind> {
    appended.conflicts.first().map(|conflict| conflict.kind)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_sees_the_change_that_it_had_to_wait_for() {
    let database = database().await;
    let store = store(&database).await;
    let (mut other, mut watch) = (connect(&database).await, connect(&database).await);
    let upstream = id();
    let ready = Builder::default().write_with(0, upstream, 0, |head, _| head.phase = Some(Phase::Ready));
    store.append(&ready.batch).await.unwrap();
    run(&mut other, &format!("BEGIN; UPDATE converge.head SET phase = 6 WHERE id = '{}'", upstream.0)).await;
    let guarded =
        Builder::default().write(0, id(), 0).guard(0, Guard::UpstreamReady { id: resource(upstream) });
    let waiting = append(&store, guarded.batch);
    until_waiting(&mut watch, 1).await;
    run(&mut other, "COMMIT").await;
    assert_eq!(lost(&waiting.await.unwrap().unwrap()), Some(ConflictKind::Guard));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_about_rows_sees_those_committed_under_the_lock_it_waited_for() {
    let database = database().await;
    let store = store(&database).await;
    let (mut other, mut watch) = (connect(&database).await, connect(&database).await);
    let parent = id();
    store.append(&Builder::default().write(0, parent, 0).batch).await.unwrap();
    // The head itself does not move, so only a check in a new statement can see the new row.
    run(&mut other, &format!(
        "BEGIN; SELECT 1 FROM converge.head WHERE id = '{0}' FOR SHARE; INSERT INTO converge.child VALUES (1, '{0}', '{1}')",
        parent.0, id().0
    )).await;
    let promote =
        Builder::default().write(0, parent, 1).guard(0, Guard::NoOpenChild { id: resource(parent) });
    let waiting = append(&store, promote.batch);
    until_waiting(&mut watch, 1).await;
    run(&mut other, "COMMIT").await;
    assert_eq!(lost(&waiting.await.unwrap().unwrap()), Some(ConflictKind::Guard));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_moves_after_its_read_fails_its_unit_alone() {
    let database = database().await;
    let store = store(&database).await;
    let (mut other, mut watch) = (connect(&database).await, connect(&database).await);
    let (a, b) = (id(), id());
    store.append(&Builder::default().write(0, a, 0).write(1, b, 0).batch).await.unwrap();
    run(&mut other, &format!("BEGIN; UPDATE converge.head SET sequence = 2 WHERE id = '{}'", a.0)).await;
    // No guards, so no locks before the update: the read sees the old version and the update waits for the new one.
    let waiting = append(&store, Builder::default().write(0, a, 1).write(1, b, 1).write(2, id(), 0).batch);
    until_waiting(&mut watch, 1).await;
    run(&mut other, "COMMIT").await;
    let appended = waiting.await.unwrap().unwrap();
    assert_eq!((lost(&appended), appended.conflicts.len()), (Some(ConflictKind::Head), 1));
    assert_eq!((appended.first.0, appended.count), (3, 2));
    assert_eq!(store.heads(&[b]).await.unwrap()[0].sequence.0, 2);
}

/// The parent becomes Ready if no child is unready.
fn promotion(parent: AggregateId, at: u64) -> Batch {
    Builder::default()
        .write_with(0, parent, at, |head, _| {
            head.phase = Some(Phase::Ready);
            head.subtree = Some(Standing::AllReady);
        })
        .guard(0, Guard::NoUnreadyChild { id: resource(parent) })
        .batch
}

/// A child opens, and takes its parent's readiness away first.
fn demotion(parent: AggregateId, at: u64, child: AggregateId) -> Batch {
    Builder::default()
        .write_with(0, parent, at, |head, _| {
            head.phase = Some(Phase::Reconciling);
            head.subtree = Some(Standing::Open);
        })
        .write_with(0, child, 1, |head, rows| {
            head.parent = Some(resource(parent));
            rows.child = Some(Some(ChildRow { parent: resource(parent), mark: ChildMark::Open }));
        })
        .batch
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_promotion_and_a_demotion_at_once_the_second_sees_the_first() {
    for promotion_first in [true, false] {
        let database = database().await;
        let store = store(&database).await;
        let (mut stop, mut watch) = (connect(&database).await, connect(&database).await);
        let (parent, child) = (id(), id());
        let both = Builder::default()
            .write(0, parent, 0)
            .write_with(1, child, 0, |head, _| head.parent = Some(resource(parent)));
        store.append(&both.batch).await.unwrap();
        hold_log_lock(&mut stop).await;
        let mut batches = [promotion(parent, 1), demotion(parent, 1, child)];
        if !promotion_first {
            batches.reverse();
        }
        let [first, second] = batches;
        // The first has the parent's lock and waits for the log; the second waits for the parent.
        let first = append(&store, first);
        until_waiting(&mut watch, 1).await;
        let second = append(&store, second);
        until_waiting(&mut watch, 2).await;
        run(&mut stop, "COMMIT").await;
        assert_eq!(lost(&first.await.unwrap().unwrap()), None);
        assert_eq!(lost(&second.await.unwrap().unwrap()), Some(ConflictKind::Head));
        // Decided again, a promotion over an open child fails, and a demotion goes through.
        let again = if promotion_first { demotion(parent, 2, child) } else { promotion(parent, 2) };
        let expected = (!promotion_first).then_some(ConflictKind::Guard);
        assert_eq!(lost(&store.append(&again).await.unwrap()), expected);
        let ready_over_open: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM converge.head h JOIN converge.child c ON c.parent = h.id WHERE h.phase = 5",
        )
        .fetch_one(&mut watch)
        .await
        .unwrap();
        assert_eq!(ready_over_open, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_that_guard_each_others_heads_in_reverse_never_deadlock() {
    let database = database().await;
    let stores = [store(&database).await, store(&database).await];
    let mut ids: Vec<AggregateId> = (0..12).map(|_| id()).collect();
    ids.sort();
    let create = (0..).zip(&ids).fold(Builder::default(), |batch, (unit, id)| batch.write(unit, *id, 0));
    stores[0].append(&create.batch).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4_usize {
        let (store, ids) = (stores[writer % 2].clone(), ids.clone());
        writers.spawn(async move {
            for round in 0..40_usize {
                let heads = store.heads(&ids).await.unwrap();
                let mut order: Vec<usize> = (0..ids.len()).collect();
                if writer % 2 == 1 {
                    order.reverse();
                }
                let mut batch = Builder::default();
                for (unit, at) in (0..).zip(order) {
                    let sequence = heads.iter().find(|head| head.id == ids[at]).unwrap().sequence;
                    let name = ResourceRef::new("vpc", format!("n{}-{}", at, (writer + round) % 3));
                    batch = if (at + writer) % 2 == 0 {
                        batch.write_with(unit, ids[at], sequence.0, |_, rows| {
                            if round % 2 == 0 {
                                rows.name_taken = Some(name);
                            } else {
                                rows.name_freed = Some(name);
                            }
                        })
                    } else {
                        batch.guard(unit, Guard::Unmoved { id: ids[at], sequence })
                    };
                }
                // A race for a name is tried again; a deadlock would show in the server's count.
                drop(store.append(&batch.batch).await);
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    let mut watch = connect(&database).await;
    run(&mut watch, "SELECT pg_stat_clear_snapshot()").await;
    let deadlocks: i64 =
        sqlx::query_scalar("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            .fetch_one(&mut watch)
            .await
            .unwrap();
    assert_eq!(deadlocks, 0);
    let (count, last): (i64, i64) = sqlx::query_as("SELECT count(*), max(position) FROM converge.events")
        .fetch_one(&mut watch)
        .await
        .unwrap();
    assert_eq!(count, last);
    assert_eq!(head(ids[0]).id, ids[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_taken_behind_the_checks_back_is_tried_again_and_then_known() {
    let database = database().await;
    let store = store(&database).await;
    let (mut other, mut watch) = (connect(&database).await, connect(&database).await);
    run(&mut other, &format!("BEGIN; INSERT INTO converge.names VALUES ('vpc', 'main', '{}')", id().0)).await;
    let a = id();
    let take = Builder::default()
        .write_with(0, a, 0, |_, rows| rows.name_taken = Some(ResourceRef::new("vpc", "main")))
        .batch;
    let waiting = append(&store, take.clone());
    until_waiting(&mut watch, 1).await;
    run(&mut other, "COMMIT").await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, converge_event_store::StoreError::Retry(_)), "{error}");
    assert_eq!(lost(&store.append(&take).await.unwrap()), Some(ConflictKind::Name));
}
