//! Drives one projection: gathers, applies, moves the checkpoint, and says how it goes.

use super::board::{Board, Progress, RunState};
use super::{CatchUp, Checkpoint, Feed, ProjectError, position_of};
use converge_domain::Position;
use converge_event_store::{StoreError, StoredEvent};
use sqlx::{Connection, PgConnection, PgPool};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A busy log commits at most this often: a checkpoint row updated for every append would rot under any
/// old snapshot, and a bigger batch folds each resource once instead of many times.
const COMMIT_EVERY: Duration = Duration::from_millis(50);
/// Events of one transaction, at most (one feed batch may go beyond).
const BATCH_EVENTS_MAX: usize = 2_000;
/// Feed batches read ahead of the transaction under way.
const READ_AHEAD_BATCHES: usize = 4;
/// How often a process that does not hold the projection looks at the other's progress.
const STANDBY_EVERY: Duration = Duration::from_millis(250);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Runs one projection until it is cancelled or stopped by an event it cannot apply.
pub struct Runner {
    projection: Arc<dyn CatchUp>,
    pool: PgPool,
    feed: Arc<dyn Feed>,
    progress: watch::Sender<Progress>,
}

type Batch = Result<Arc<Vec<StoredEvent>>, StoreError>;

impl Runner {
    /// A runner that reports to `board`. `pool` must reach the primary.
    pub fn new(projection: Arc<dyn CatchUp>, pool: PgPool, feed: Arc<dyn Feed>, board: &Board) -> Self {
        let progress = board.entry(projection.name());
        Self { projection, pool, feed, progress }
    }

    /// Runs. Returns when `stop` is cancelled, or after an event that cannot be applied: then the board says
    /// [`RunState::Stopped`], `converge_projection_stopped` is 1, and the rows stand before that event.
    pub async fn run(self, stop: CancellationToken) {
        let name = self.projection.name();
        let stopped = metrics::gauge!("converge_projection_stopped", "projection" => name);
        stopped.set(0.0);
        let mut pause = RETRY_FIRST;
        let mut corrupt_before = false;
        loop {
            let before = self.progress.borrow().position;
            let outcome = tokio::select! {
                () = stop.cancelled() => return,
                outcome = self.session() => outcome,
            };
            let Err(error) = outcome;
            let advanced = self.progress.borrow().position != before;
            // A follower ends like this when the log's history was replaced under it (a failover that lost
            // commits). Rows and checkpoint are in the same database and went back with the log, so a new
            // session resumes rightly. If it was the log that is corrupt, the next session fails the same way
            // without having advanced, and that one stops.
            let history_replaced =
                matches!(error, ProjectError::Log(StoreError::Corrupt(_))) && !corrupt_before;
            corrupt_before = matches!(error, ProjectError::Log(StoreError::Corrupt(_))) && !advanced;
            if !error.is_transient() && !history_replaced {
                tracing::error!(projection = name, %error, "the projection stops; it will not skip the event");
                stopped.set(1.0);
                self.report(|progress| progress.state = RunState::Stopped { reason: error.to_string() });
                return;
            }
            tracing::warn!(projection = name, %error, "the projection lost its footing; trying again");
            self.report(|progress| progress.state = RunState::Starting);
            // Progress since the last failure: a new trouble, not the same one again.
            if advanced {
                pause = RETRY_FIRST;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// One connection's life: wait for the projection's lock, take the checkpoint, apply for ever.
    ///
    /// The advisory lock only keeps processes from working against each other; what makes writing safe is
    /// the checkpoint's fence. It is held by the very session that writes, so losing one loses the other.
    async fn session(&self) -> Result<std::convert::Infallible, ProjectError> {
        let name = self.projection.name();
        // Detached: a pooled connection would go back to the pool with the lock still on it.
        let mut connection = self.pool.acquire().await?.detach();
        sqlx::query(
            "SELECT set_config('lock_timeout', '5s', false),
                    set_config('idle_in_transaction_session_timeout', '10s', false)",
        )
        .execute(&mut connection)
        .await?;
        while !try_lock(&mut connection, name).await? {
            let position = position_of(&mut connection, name).await?;
            self.report(|progress| *progress = Progress { position, state: RunState::Standby });
            tokio::time::sleep(STANDBY_EVERY).await;
        }
        let mut checkpoint = Checkpoint::take(&mut connection, self.projection.as_ref()).await?;
        self.publish(checkpoint.position());

        // The follower has a task of its own, because a half-polled `next` must not be dropped by the
        // select below; the channel's bound is what keeps it from running ahead of the transaction.
        let (sender, mut batches) = mpsc::channel::<Batch>(READ_AHEAD_BATCHES);
        let mut follower = self.feed.follow(checkpoint.position());
        let _reader = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let batch = follower.next().await;
                let failed = batch.is_err();
                if sender.send(batch).await.is_err() || failed {
                    return;
                }
            }
        }));

        let mut not_before = Instant::now();
        loop {
            let events = gather(&mut batches, not_before).await?;
            checkpoint = self.apply(&mut connection, checkpoint, &events).await?;
            not_before = Instant::now() + COMMIT_EVERY;
        }
    }

    /// Applies one batch; when it is refused for good, event by event, so that everything before the
    /// culprit is in the rows and the report names its very position.
    async fn apply(
        &self,
        connection: &mut PgConnection,
        checkpoint: Checkpoint,
        events: &[StoredEvent],
    ) -> Result<Checkpoint, ProjectError> {
        let projection = self.projection.as_ref();
        match apply_batch(connection, projection, checkpoint, events).await {
            Ok(moved) => {
                self.publish(moved.position());
                Ok(moved)
            }
            Err(error) if error.is_transient() || events.len() < 2 => Err(name_culprit(error, events)),
            Err(_) => {
                let mut checkpoint = checkpoint;
                for event in events {
                    let alone = std::slice::from_ref(event);
                    checkpoint = apply_batch(connection, projection, checkpoint, alone)
                        .await
                        .map_err(|error| name_culprit(error, alone))?;
                    self.publish(checkpoint.position());
                }
                Ok(checkpoint)
            }
        }
    }

    fn publish(&self, position: Position) {
        let name = self.projection.name();
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a double; 2^53 events are out of reach")]
        metrics::gauge!("converge_projection_position", "projection" => name).set(position.0 as f64);
        self.report(|progress| *progress = Progress { position, state: RunState::Live });
    }

    fn report(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }
}

/// Applies `events` and moves `checkpoint` past them, in one transaction.
///
/// # Errors
/// Nothing was written, except that a lost connection leaves the outcome open: the checkpoint, read again,
/// says which it was.
pub async fn apply_batch(
    connection: &mut PgConnection,
    projection: &dyn CatchUp,
    checkpoint: Checkpoint,
    events: &[StoredEvent],
) -> Result<Checkpoint, ProjectError> {
    let mut last = checkpoint.position();
    for event in events {
        if event.position != last.next() {
            let reason = format!("the log goes from {last} to {}; a position is missing", event.position);
            return Err(ProjectError::Poison { position: event.position, reason });
        }
        last = event.position;
    }
    let mut tx = connection.begin().await?;
    // The fence first: a runner that lost the projection finds out before it touches any row.
    let moved = checkpoint.advance(&mut tx, last).await?;
    projection.apply(&mut tx, events).await?;
    tx.commit().await?;
    Ok(moved)
}

/// Waits for a batch, then takes what is there already or arrives before `not_before`, up to the bound.
async fn gather(
    batches: &mut mpsc::Receiver<Batch>,
    not_before: Instant,
) -> Result<Vec<StoredEvent>, ProjectError> {
    let closed = || StoreError::Unavailable("the follower ended".to_owned());
    let first = batches.recv().await.ok_or_else(closed)??;
    let mut events = Vec::clone(&first);
    while events.len() < BATCH_EVENTS_MAX {
        let more = tokio::select! {
            biased;
            more = batches.recv() => more.ok_or_else(closed)?,
            () = tokio::time::sleep_until(not_before) => break,
        };
        match more {
            Ok(more) => events.extend_from_slice(&more),
            // What was gathered is good; the failure has ended the reader, so the next call reports it.
            Err(error) => {
                tracing::debug!(%error, "the follower failed behind a good batch");
                break;
            }
        }
    }
    Ok(events)
}

/// A refusal by the database names no position; for a single event it is that event's.
fn name_culprit(error: ProjectError, events: &[StoredEvent]) -> ProjectError {
    match (error, events) {
        (ProjectError::Database(error), [event]) if !ProjectError::is_transient_database(&error) => {
            ProjectError::Poison { position: event.position, reason: error.to_string() }
        }
        (error, _) => error,
    }
}

async fn try_lock(connection: &mut PgConnection, name: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtext('converge projection'), hashtext($1))")
        .bind(name)
        .fetch_one(connection)
        .await
}
