//! The tail: contiguous, complete, and nobody's brake.

use crate::support::{declare, delete, group, id};
use crate::{log, log_with, memory};
use converge_domain::Position;
use converge_event_store::memory::Fault;
use converge_event_store::{Follower, LogConfig, StoreError};
use std::time::Duration;

pub use deaf::Deaf;

/// Takes `count` events, checking that each is the one after the last.
async fn take(follower: &mut Follower, count: u64) -> u64 {
    let mut expected = follower.position().0;
    let until = expected + count;
    while expected < until {
        for event in follower.next().await.unwrap().iter() {
            expected += 1;
            assert_eq!(event.position.0, expected);
        }
    }
    expected
}

#[tokio::test(flavor = "multi_thread")]
async fn every_follower_sees_every_event_once_and_in_order() {
    let (_, store) = memory();
    let (ours, theirs) = (log(&store).await, log(&store).await);
    let mut followers = Vec::new();
    for _ in 0..3 {
        let mut follower = ours.tail().follow(Position(0));
        followers.push(tokio::spawn(async move { take(&mut follower, 300).await }));
    }
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..300 {
        let log = if n % 3 == 0 { theirs.clone() } else { ours.clone() };
        writers.spawn(async move { log.execute(group(vec![(id(), declare(&n.to_string(), 1))])).await });
    }
    while let Some(result) = writers.join_next().await {
        result.unwrap().unwrap();
    }
    for follower in followers {
        assert_eq!(follower.await.unwrap(), 300);
    }
}

#[tokio::test]
async fn a_caller_who_has_his_answer_finds_his_events_in_the_tail() {
    let (_, store) = memory();
    let log = log(&store).await;
    for n in 1..=20 {
        let committed = log.execute(group(vec![(id(), declare(&n.to_string(), 1))])).await.unwrap();
        assert_eq!(log.tail().head(), committed.position);
    }
}

#[tokio::test]
async fn heads_from_memory_are_never_older_than_the_frontier() {
    let (_, store) = memory();
    let (ours, theirs) = (log(&store).await, log(&store).await);
    let a = id();
    for n in 1..=20 {
        // Kept by both, and outdated by the other's commit.
        let committed = ours.execute(group(vec![(a, declare("a", 2 * n))])).await.unwrap();
        theirs.tail().wait_for(committed.position).await.unwrap();
        assert_eq!(theirs.heads(&[a]).await.unwrap()[0].sequence, committed.steps[0].events[0].sequence);
        let committed = theirs.execute(group(vec![(a, declare("a", 2 * n + 1))])).await.unwrap();
        ours.tail().wait_for(committed.position).await.unwrap();
        assert_eq!(ours.heads(&[a, id()]).await.unwrap()[0].sequence, committed.steps[0].events[0].sequence);
    }
    let deleted = theirs.execute(group(vec![(a, delete())])).await.unwrap();
    ours.tail().wait_for(deleted.position).await.unwrap();
    assert!(ours.heads(&[a]).await.unwrap().iter().all(|head| head.sequence.0 == 41));
}

#[tokio::test]
async fn a_follower_that_fell_behind_reads_on_from_the_store() {
    let (_, store) = memory();
    let log = log_with(&store, LogConfig { ring_events_max: 5, ..LogConfig::default() }).await;
    for n in 0..50 {
        log.execute(group(vec![(id(), declare(&n.to_string(), 1))])).await.unwrap();
    }
    assert_eq!(take(&mut log.tail().follow(Position(0)), 50).await, 50);
    assert_eq!(take(&mut log.tail().follow(Position(37)), 13).await, 50);
}

#[tokio::test]
async fn followers_that_fell_behind_are_handed_the_same_pages() {
    let (_, store) = memory();
    let config = LogConfig { ring_events_max: 10, ..LogConfig::default() };
    let log = log_with(&store, config).await;
    for n in 0..21 {
        let steps = (0..100).map(|m| (id(), declare(&format!("{n}.{m}"), 1))).collect();
        log.execute(group(steps)).await.unwrap();
    }
    let mut first = log.tail().follow(Position(0));
    let mut second = log.tail().follow(Position(0));
    for _ in 0..2 {
        let (ours, theirs) = (first.next().await.unwrap(), second.next().await.unwrap());
        assert!(std::sync::Arc::ptr_eq(&ours, &theirs), "{} and {} events", ours.len(), theirs.len());
    }
    assert_eq!(take(&mut first, 100).await, 2100);
    // One that begins in the middle of a page gets the rest of it.
    let mut late = log.tail().follow(Position(1_500));
    assert_eq!(late.next().await.unwrap().len(), 500);
    assert_eq!(take(&mut late, 100).await, 2100);
}

#[tokio::test]
async fn other_processes_are_found_by_the_poll_when_nothing_is_heard() {
    let (_, store) = memory();
    let config = LogConfig { poll_interval: Duration::from_millis(20), ..LogConfig::default() };
    let ours = log_with(&Deaf::over(store.clone()), config).await;
    let mut follower = ours.tail().follow(Position(0));
    let theirs = log(&store).await;
    theirs.execute(group(vec![(id(), declare("a", 1))])).await.unwrap();
    assert_eq!(take(&mut follower, 1).await, 1);
}

#[tokio::test]
async fn a_step_that_changes_nothing_beside_one_that_does_is_decided_on_what_is_there_now() {
    let (_, store) = memory();
    // Nothing is heard of the other process for an hour: its change is not in our cache.
    let config = LogConfig { poll_interval: Duration::from_secs(3600), ..LogConfig::default() };
    let ours = log_with(&Deaf::over(store.clone()), config).await;
    let theirs = log(&store).await;
    let (shared, other) = (id(), id());
    ours.execute(group(vec![(shared, declare("shared", 1))])).await.unwrap();
    theirs.execute(group(vec![(shared, declare("shared", 2))])).await.unwrap();
    // As far as we know it is at 1 already.
    let steps = vec![(shared, declare("shared", 1)), (other, declare("other", 1))];
    let committed = ours.execute(group(steps)).await.unwrap();
    assert_eq!(committed.steps[0].events.len(), 1, "it was 2, so it is declared anew");
    let heads = store.heads(&[shared]).await.unwrap();
    assert_eq!(heads[0].sequence.0, 3);
}

#[tokio::test]
async fn a_cancelled_wait_hands_nothing_out() {
    let (_, store) = memory();
    let log = log(&store).await;
    let mut follower = log.tail().follow(Position(0));
    for _ in 0..3 {
        let wait = tokio::time::timeout(Duration::from_millis(1), follower.next());
        assert!(wait.await.is_err());
    }
    log.execute(group(vec![(id(), declare("a", 1))])).await.unwrap();
    assert_eq!(take(&mut follower, 1).await, 1);
}

#[tokio::test]
async fn waiting_ends_with_the_log() {
    let (_, store) = memory();
    let log = log(&store).await;
    let (tail, mut follower) = (log.tail(), log.tail().follow(Position(0)));
    let waits = tokio::spawn(async move {
        assert!(tail.wait_for(Position(9)).await.is_err());
        assert!(follower.next().await.is_err());
    });
    log.shutdown().await;
    waits.await.unwrap();
}

#[tokio::test]
async fn a_database_that_lost_commits_empties_caches_and_ends_followers() {
    let (memory, store) = memory();
    let log = log(&store).await;
    let a = id();
    log.execute(group(vec![(a, declare("a", 1))])).await.unwrap();
    let old = memory.snapshot();
    log.execute(group(vec![(a, declare("a", 2))])).await.unwrap();
    log.execute(group(vec![(a, declare("a", 3))])).await.unwrap();
    let mut follower = log.tail().follow(Position(3));
    let mut history = log.tail().history();
    memory.restore(&old);
    patiently(history.wait_for(|count| *count == 1)).await.unwrap();
    assert!(matches!(follower.next().await, Err(StoreError::Corrupt(_))));
    assert_eq!(log.tail().head(), Position(1));
    // Decided on what is there now, not on what was.
    let committed = log.execute(group(vec![(a, declare("a", 4))])).await.unwrap();
    assert_eq!((committed.position, committed.steps[0].events[0].sequence.0), (Position(2), 2));
}

#[tokio::test]
async fn a_longer_log_with_another_past_is_recognised_after_an_outage() {
    let (memory, store) = memory();
    let log = log(&store).await;
    log.execute(group(vec![(id(), declare("a", 1))])).await.unwrap();
    let old = memory.snapshot();
    log.execute(group(vec![(id(), declare("b", 1))])).await.unwrap();
    memory.restore(&old);
    // The other history passes through the same positions and beyond.
    for _ in 0..5 {
        let batch = crate::support::Builder::default().write(0, id(), 0).write(1, id(), 0).batch;
        store.append(&batch).await.unwrap();
    }
    let mut history = log.tail().history();
    memory.inject(Fault::Fail(StoreError::Unavailable("failover".into())));
    log.execute(group(vec![(id(), declare("c", 1))])).await.unwrap();
    patiently(history.wait_for(|count| *count == 1)).await.unwrap();
}

/// A limit that only a hang reaches.
async fn patiently<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it hangs")
}

mod deaf {
    //! A store that never hears of appends.

    use async_trait::async_trait;
    use converge_domain::*;
    use converge_event_store::*;
    use std::sync::Arc;

    pub struct Deaf(Arc<dyn Store>);

    impl Deaf {
        pub fn over(store: Arc<dyn Store>) -> Arc<dyn Store> {
            Arc::new(Self(store))
        }
    }

    macro_rules! forward {
        ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
            #[async_trait]
            impl Store for Deaf {
                async fn appended(&self) -> Result<(), StoreError> {
                    std::future::pending().await
                }
                $(async fn $name(&self $(, $arg: $type)*) -> Result<$out, StoreError> {
                    self.0.$name($($arg),*).await
                })*
            }
        };
    }

    forward! {
        append(batch: &Batch) -> Appended;
        find_batch(batch_id: BatchId) -> Option<Appended>;
        log_head() -> LogHead;
        chain_at(position: Position) -> Option<Vec<u8>>;
        read(after: Position, limit: u32) -> Vec<StoredEvent>;
        read_stream(id: AggregateId, after: Sequence, limit: u32) -> Vec<StoredEvent>;
        read_beginnings(streams: &[(AggregateId, Sequence)], before: Position, each: u32) -> Vec<StoredEvent>;
        now() -> Timestamp;
        heads(ids: &[AggregateId]) -> Vec<Head>;
        heads_of_type(aggregate_type: AggregateType) -> Vec<Head>;
        names(names: &[ResourceRef]) -> Vec<(ResourceRef, AggregateId)>;
        names_of_kind(kind: &str, after: &str, limit: u32) -> Vec<(String, ResourceId)>;
        dependents(upstream: ResourceId, after: Option<ResourceId>, limit: u32) -> Vec<ResourceId>;
        held(ids: &[ResourceId]) -> Vec<converge_event_store::Held>;
        children(parent: ResourceId, after: Option<ResourceId>, limit: u32) -> Vec<ResourceId>;
        children_summary(parent: ResourceId) -> ChildrenSummary;
        children_digest(parent: ResourceId) -> (u64, String);
        unsettled(after: Option<(ResourceId, ResourceId)>, limit: u32) -> Vec<(ResourceId, ResourceId)>;
        queue(kind: &KindRef, cursor: Option<QueueCursor>, limit: u32) -> Vec<QueueRow>;
        due_timers(after: Timestamp, limit: u32) -> Vec<TimerRow>;
        next_timer_in_ms(after: Timestamp) -> Option<i64>;
        live_claims(kind: &KindRef) -> u64;
        claims_of(session: SessionId, limit: u32) -> Vec<ResourceId>;
        beat(member: &Member) -> Timestamp;
        members() -> Vec<(Member, i64)>;
        remove_member(session: SessionId) -> ();
        dead_sessions(dead_ms: i64) -> Vec<SessionId>;
        stage(root: ResourceId, claim_id: ClaimId, items: &[StagedItem]) -> ();
        staged(root: ResourceId, claim_id: ClaimId, after: i64, limit: u32) -> Vec<StagedItem>;
        staged_at(root: ResourceId, claim_id: ClaimId, ordinals: &[i64]) -> Vec<StagedItem>;
        unstage(root: ResourceId, claim_id: ClaimId) -> ();
    }
}
