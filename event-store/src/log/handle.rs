//! The handle that callers hold.

use super::cache::Cache;
use super::lane;
use super::queue::{Pending, Queue};
use super::{CommandGroup, Committed, ExecuteError, InlineProjector, LogConfig};
use crate::clock::DatabaseClock;
use crate::store::{Store, StoreError};
use crate::tail::Tail;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What lanes share.
pub(super) struct Inner {
    pub store: Arc<dyn Store>,
    pub projector: Arc<dyn InlineProjector>,
    pub config: LogConfig,
    pub cache: Arc<Cache>,
    pub clock: Arc<DatabaseClock>,
    pub tail: Tail,
    /// Set when the log shuts down: nobody waits for a database that does not come back any more.
    pub closing: AtomicBool,
}

/// Closes the lanes when the last handle goes.
struct Lanes {
    queues: Vec<Arc<Queue>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    inner: Arc<Inner>,
}

impl Lanes {
    fn close(&self) {
        self.inner.closing.store(true, Ordering::SeqCst);
        for queue in &self.queues {
            queue.close();
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.close();
        self.inner.tail.stop();
    }
}

/// The executor of commands; cheap to clone. When the last clone goes, queued groups are still executed.
#[derive(Clone)]
pub struct Log {
    inner: Arc<Inner>,
    lanes: Arc<Lanes>,
}

impl Log {
    /// Starts the lanes and the tail behind the log's present end.
    ///
    /// # Errors
    /// When the store cannot be asked for its end and its time.
    pub async fn start(
        store: Arc<dyn Store>,
        projector: Arc<dyn InlineProjector>,
        config: LogConfig,
    ) -> Result<Self, StoreError> {
        let clock = Arc::new(DatabaseClock::read(store.as_ref()).await?);
        let cache = Arc::new(Cache::new(config.cache_entries_max, config.cache_bytes_max));
        let tail =
            Tail::start(store.clone(), cache.clone(), config.poll_interval, config.ring_events_max).await?;
        let inner =
            Arc::new(Inner { store, projector, config, cache, clock, tail, closing: AtomicBool::new(false) });
        let mut queues = Vec::new();
        let mut tasks = Vec::new();
        for _ in 0..inner.config.lanes.max(1) {
            let queue = Arc::new(Queue::new(inner.config.queue_groups_max, inner.config.queue_bytes_max));
            tasks.push(tokio::spawn(lane::run(inner.clone(), queue.clone())));
            queues.push(queue);
        }
        let lanes = Arc::new(Lanes { queues, tasks: Mutex::new(tasks), inner: inner.clone() });
        Ok(Self { inner, lanes })
    }

    /// Executes a group: all of its steps, or none.
    ///
    /// A caller that stops waiting cancels nothing; the group is executed all the same.
    ///
    /// # Errors
    /// See [`ExecuteError`]; all of them mean that nothing was appended, but for
    /// [`StoreError::OutcomeUnknown`], which is only reported when the log shuts down without a database.
    pub async fn execute(&self, group: CommandGroup) -> Result<Committed, ExecuteError> {
        self.submit(group)?.await.unwrap_or(Err(ExecuteError::Closed))
    }

    /// Queues a group and returns at once; the receiver gets its result.
    ///
    /// # Errors
    /// When the group cannot be queued.
    pub fn submit(
        &self,
        group: CommandGroup,
    ) -> Result<oneshot::Receiver<Result<Committed, ExecuteError>>, ExecuteError> {
        let (reply, answer) = oneshot::channel();
        // One aggregate always goes to one lane, so lanes do not fight over it.
        let mut hasher = DefaultHasher::new();
        group.steps.first().map(|(address, _)| address.id).hash(&mut hasher);
        let lanes = self.lanes.queues.len() as u64;
        let lane = usize::try_from(hasher.finish() % lanes).unwrap_or(0);
        self.lanes.queues[lane].push(Pending::new(group, reply))?;
        Ok(answer)
    }

    /// The log's ordered stream.
    pub fn tail(&self) -> Tail {
        self.inner.tail.clone()
    }

    /// The database's clock as this process knows it.
    pub fn clock(&self) -> Arc<DatabaseClock> {
        self.inner.clock.clone()
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The store behind the log.
    pub fn store(&self) -> Arc<dyn Store> {
        self.inner.store.clone()
    }

    /// Accepts no more groups, executes those that are queued, and stops.
    pub async fn shutdown(&self) {
        self.lanes.close();
        let tasks = std::mem::take(&mut *self.lanes.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "a lane of the log ended badly");
            }
        }
        self.inner.tail.stop();
    }
}

impl Inner {
    /// Repeats a read while the database is away, within the configured patience.
    pub(super) async fn read_with_patience<T, F, R>(&self, read: F) -> Result<T, StoreError>
    where
        F: Fn(Arc<dyn Store>) -> R,
        R: Future<Output = Result<T, StoreError>>,
    {
        let mut patience = super::commit::Patience::new(self.config.unavailable_max);
        loop {
            match read(self.store.clone()).await {
                Err(StoreError::Unavailable(_) | StoreError::Retry(_)) if patience.wait().await => {
                    self.tail.suspect();
                }
                result => return result,
            }
        }
    }
}
