//! Rules of the runner: exactly once, one writer, never skipping, always telling.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use async_trait::async_trait;
use converge_domain::Position;
use converge_event_store::{StoreError, StoredEvent};
use converge_projections::catch_up::{
    Board, CatchUp, Checkpoint, Feed, Follow, ProjectError, ResourceList, RunState, Runner, WaitError,
    apply_batch, position_of,
};
use sqlx::{PgConnection, PgPool};
use std::sync::Arc;
use std::time::Duration;
use support::database::database;
use support::feed::MemoryFeed;
use support::story::a_varied_story;
use tokio_util::sync::CancellationToken;

const GENEROUS: Duration = Duration::from_secs(60);

fn start(
    projection: Arc<dyn CatchUp>,
    pool: &PgPool,
    feed: &MemoryFeed,
    board: &Board,
) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let stop = CancellationToken::new();
    let runner = Runner::new(projection, pool.clone(), Arc::new(feed.clone()), board);
    (stop.clone(), tokio::spawn(runner.run(stop)))
}

#[tokio::test]
async fn a_runner_catches_up_and_then_follows() {
    let (_database, pool) = database().await;
    let log = a_varied_story().events;
    let (old, new) = log.split_at(20);
    let (feed, board) = (MemoryFeed::new(old.to_vec(), 3), Board::default());
    let (stop, running) = start(Arc::new(ResourceList), &pool, &feed, &board);
    board.wait("resource_list", Position(20), GENEROUS).await.unwrap();
    assert_eq!(position_of(&pool, "resource_list").await.unwrap(), Position(20));
    feed.extend(new);
    board.wait("resource_list", Position(log.len() as u64), GENEROUS).await.unwrap();
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_second_runner_stands_by_and_takes_over_where_the_first_left_off() {
    let (_database, pool) = database().await;
    let log = a_varied_story().events;
    let (old, new) = log.split_at(20);
    let feed = MemoryFeed::new(old.to_vec(), 3);
    let (first, second) = (Board::default(), Board::default());
    let (stop_first, first_running) = start(Arc::new(ResourceList), &pool, &feed, &first);
    first.wait("resource_list", Position(20), GENEROUS).await.unwrap();
    let (stop_second, second_running) = start(Arc::new(ResourceList), &pool, &feed, &second);
    second.wait("resource_list", Position(20), GENEROUS).await.unwrap();
    assert_eq!(second.progress("resource_list").unwrap().state, RunState::Standby);
    stop_first.cancel();
    first_running.await.unwrap();
    feed.extend(new);
    second.wait("resource_list", Position(log.len() as u64), GENEROUS).await.unwrap();
    assert_eq!(second.progress("resource_list").unwrap().state, RunState::Live);
    stop_second.cancel();
    second_running.await.unwrap();
}

#[tokio::test]
async fn a_runner_that_was_overtaken_while_frozen_writes_nothing() {
    let (_database, pool) = database().await;
    let log = a_varied_story().events;
    let mut frozen = pool.acquire().await.unwrap();
    let mut live = pool.acquire().await.unwrap();
    let old = Checkpoint::take(&mut frozen, &ResourceList).await.unwrap();
    let new = Checkpoint::take(&mut live, &ResourceList).await.unwrap();
    let refused = apply_batch(&mut frozen, &ResourceList, old, &log[..5]).await;
    assert!(matches!(refused, Err(ProjectError::Fenced)), "{refused:?}");
    let rows: i64 =
        sqlx::query_scalar("SELECT count(*) FROM projections.resource_list").fetch_one(&pool).await.unwrap();
    assert_eq!(rows, 0);
    apply_batch(&mut live, &ResourceList, new, &log[..5]).await.unwrap();
}

#[tokio::test]
async fn a_batch_whose_commit_answer_was_lost_is_not_applied_twice() {
    let (_database, pool) = database().await;
    let log = a_varied_story().events;
    let mut connection = pool.acquire().await.unwrap();
    let before = Checkpoint::take(&mut connection, &ResourceList).await.unwrap();
    apply_batch(&mut connection, &ResourceList, before, &log[..5]).await.unwrap();
    let again = apply_batch(&mut connection, &ResourceList, before, &log[..5]).await;
    assert!(matches!(again, Err(ProjectError::Fenced)), "{again:?}");
}

/// The list, except that it chokes on one position.
struct Choking(Position);

#[async_trait]
impl CatchUp for Choking {
    fn name(&self) -> &'static str {
        "choking"
    }

    fn version(&self) -> i32 {
        1
    }

    async fn reset(&self, tx: &mut PgConnection) -> Result<(), ProjectError> {
        ResourceList.reset(tx).await
    }

    async fn apply(&self, tx: &mut PgConnection, events: &[StoredEvent]) -> Result<(), ProjectError> {
        if events.iter().any(|event| event.position == self.0) {
            // As a real one would: an error of the database that names no event.
            sqlx::query("SELECT 1 / 0").execute(&mut *tx).await?;
        }
        ResourceList.apply(tx, events).await
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_applied_stops_the_projection_right_before_it_and_visibly() {
    let (_database, pool) = database().await;
    let log = a_varied_story().events;
    let (feed, board) = (MemoryFeed::new(log.clone(), 100), Board::default());
    let (_stop, running) = start(Arc::new(Choking(Position(17))), &pool, &feed, &board);
    // It returns by itself, once it has stopped.
    tokio::time::timeout(GENEROUS, running).await.unwrap().unwrap();
    let [(name, position, reason)] = board.stopped().try_into().unwrap();
    assert_eq!((name, position), ("choking", Position(16)));
    assert!(reason.contains("position 17") && reason.contains("division by zero"), "{reason}");
    assert_eq!(position_of(&pool, "choking").await.unwrap(), Position(16), "everything before it is applied");
    let waited = board.wait("choking", Position(30), GENEROUS).await;
    assert!(matches!(waited, Err(WaitError::Stopped { .. })), "a reader is told at once: {waited:?}");
    // Somebody mended it: it goes on from where it stood.
    let (feed, board) = (MemoryFeed::new(log.clone(), 100), Board::default());
    let (stop, running) = start(Arc::new(Choking(Position(u64::MAX))), &pool, &feed, &board);
    board.wait("choking", Position(log.len() as u64), GENEROUS).await.unwrap();
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_gap_in_the_log_is_never_stepped_over() {
    let (_database, pool) = database().await;
    let mut log = a_varied_story().events;
    log.remove(4);
    let mut connection = pool.acquire().await.unwrap();
    let checkpoint = Checkpoint::take(&mut connection, &ResourceList).await.unwrap();
    let refused = apply_batch(&mut connection, &ResourceList, checkpoint, &log).await;
    assert!(matches!(refused, Err(ProjectError::Poison { position: Position(6), .. })), "{refused:?}");
}

/// The list by a later build.
struct Later;

#[async_trait]
impl CatchUp for Later {
    fn name(&self) -> &'static str {
        "resource_list"
    }

    fn version(&self) -> i32 {
        ResourceList.version() + 1
    }

    async fn reset(&self, tx: &mut PgConnection) -> Result<(), ProjectError> {
        ResourceList.reset(tx).await
    }

    async fn apply(&self, tx: &mut PgConnection, events: &[StoredEvent]) -> Result<(), ProjectError> {
        ResourceList.apply(tx, events).await
    }
}

#[tokio::test]
async fn a_later_version_builds_anew_and_an_earlier_one_then_keeps_its_hands_off() {
    let (_database, pool) = database().await;
    let log = a_varied_story().events;
    let mut connection = pool.acquire().await.unwrap();
    let old = Checkpoint::take(&mut connection, &ResourceList).await.unwrap();
    apply_batch(&mut connection, &ResourceList, old, &log).await.unwrap();
    let new = Checkpoint::take(&mut connection, &Later).await.unwrap();
    assert_eq!(new.position(), Position(0));
    apply_batch(&mut connection, &Later, new, &log).await.unwrap();
    let refused = Checkpoint::take(&mut connection, &ResourceList).await;
    assert!(matches!(refused, Err(ProjectError::Newer { stored: 3, known: 2 })), "{refused:?}");
}

#[tokio::test]
async fn a_wait_for_a_position_ends_in_time_and_says_how_far_it_got() {
    let (_database, pool) = database().await;
    let log = a_varied_story().events;
    let (feed, board) = (MemoryFeed::new(log[..7].to_vec(), 3), Board::default());
    let (stop, running) = start(Arc::new(ResourceList), &pool, &feed, &board);
    board.wait("resource_list", Position(7), GENEROUS).await.unwrap();
    let waited = board.wait("resource_list", Position(8), Duration::from_millis(50)).await;
    assert!(matches!(waited, Err(WaitError::TimedOut { position: Position(7), .. })), "{waited:?}");
    stop.cancel();
    running.await.unwrap();
}

/// A feed whose first followers find the log's history replaced.
struct Shaky {
    feed: MemoryFeed,
    failures: std::sync::atomic::AtomicI32,
}

struct Replaced;

#[async_trait]
impl Follow for Replaced {
    async fn next(&mut self) -> Result<Arc<Vec<StoredEvent>>, StoreError> {
        Err(StoreError::Corrupt("the log's history was replaced".to_owned()))
    }
}

impl Feed for Shaky {
    fn follow(&self, after: Position) -> Box<dyn Follow> {
        let left = self.failures.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
        if left > 0 { Box::new(Replaced) } else { self.feed.follow(after) }
    }

    fn head(&self) -> Position {
        self.feed.head()
    }
}

#[tokio::test]
async fn a_replaced_history_starts_over_from_the_stored_checkpoint_but_a_corrupt_log_stops() {
    let (_database, pool) = database().await;
    let log = a_varied_story().events;
    for (failures, stops) in [(1, false), (i32::MAX, true)] {
        let feed = MemoryFeed::new(log.clone(), 5);
        let feed = Arc::new(Shaky { feed, failures: failures.into() });
        let (board, stop) = (Board::default(), CancellationToken::new());
        let runner = Runner::new(Arc::new(ResourceList), pool.clone(), feed, &board);
        let running = tokio::spawn(runner.run(stop.clone()));
        if stops {
            tokio::time::timeout(GENEROUS, running).await.unwrap().unwrap();
            assert_eq!(board.stopped().len(), 1);
        } else {
            board.wait("resource_list", Position(log.len() as u64), GENEROUS).await.unwrap();
            stop.cancel();
            running.await.unwrap();
        }
    }
}
