//! Claims without rows: counted from the moment a cap comes, found when their process is dead.

use crate::support::{Builder, database, id, resource};
use crate::{append, connect, hold_log_lock, run, store, until, until_waiting};
use converge_domain::guard::Guard;
use converge_domain::{AggregateId, KindRef, SessionId};
use converge_event_store::{Batch, ClaimRow, ConflictKind, PolicyRow, Store};
use uuid::Uuid;

fn kind() -> KindRef {
    KindRef::new("vpc", 1)
}

fn claim(a: AggregateId, at: u64, session: SessionId) -> Batch {
    let row = ClaimRow { id: resource(a), kind: kind(), session };
    Builder::default().write_with(0, a, at, |_, rows| rows.claim = Some(Some(row))).batch
}

fn policy(the_kind: AggregateId, at: u64, max_inflight: i32) -> Batch {
    let row = PolicyRow { kind: kind(), max_inflight };
    Builder::default().write_with(0, the_kind, at, |_, rows| rows.policy = Some(row)).batch
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_counts_the_claims_that_were_on_their_way_when_it_came() {
    let database = database().await;
    let store = store(&database).await;
    let (mut stop, mut watch) = (connect(&database).await, connect(&database).await);
    let (the_kind, session) = (id(), SessionId(Uuid::new_v4()));
    store.append(&policy(the_kind, 0, 0)).await.unwrap();
    let ended = id();
    store.append(&claim(ended, 0, session)).await.unwrap();
    hold_log_lock(&mut stop).await;
    // One claim begins, one ends; both have looked at the policy and wait for the log.
    let begins = append(&store, claim(id(), 0, session));
    let ends =
        append(&store, Builder::default().write_with(0, ended, 1, |_, rows| rows.claim = Some(None)).batch);
    until_waiting(&mut watch, 2).await;
    let capped = append(&store, policy(the_kind, 1, 1));
    until_waiting(&mut watch, 3).await;
    run(&mut stop, "COMMIT").await;
    for appended in [begins, ends, capped] {
        assert_eq!(appended.await.unwrap().unwrap().conflicts, []);
    }
    assert_eq!(store.live_claims(&kind()).await.unwrap(), 1);
    let another = Builder::default().write(0, id(), 0).guard(0, Guard::UnderCap { kind: kind() }).batch;
    assert_eq!(store.append(&another).await.unwrap().conflicts[0].kind, ConflictKind::Guard);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_not_forgotten_while_a_claim_of_it_is_on_its_way() {
    let database = database().await;
    let store = store(&database).await;
    let (mut stop, mut watch) = (connect(&database).await, connect(&database).await);
    let (a, session) = (id(), SessionId(Uuid::new_v4()));
    store.append(&claim(a, 0, session)).await.unwrap();
    store
        .append(&Builder::default().write_with(0, a, 1, |_, rows| rows.claim = Some(None)).batch)
        .await
        .unwrap();
    hold_log_lock(&mut stop).await;
    let late = append(&store, claim(a, 2, session));
    until_waiting(&mut watch, 1).await;
    let asking = tokio::spawn({
        let store = store.clone();
        async move { store.claims_of(session, 10).await }
    });
    until(&mut watch, 1, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%converge.claims_of%'").await;
    run(&mut stop, "COMMIT").await;
    late.await.unwrap().unwrap();
    assert_eq!(asking.await.unwrap().unwrap(), [resource(a)]);
    assert_eq!(store.dead_sessions(1000).await.unwrap(), [session]);
}
