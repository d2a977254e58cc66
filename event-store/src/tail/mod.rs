//! The log as a stream: strictly contiguous, without gaps and without doubles, from memory where possible.
//!
//! Lanes commit out of order and other processes commit in between, so what is published here waits until
//! everything before it is known: followers only ever see the *frontier* move. A gap that our own lanes do not
//! close is read from the store. Other processes are heard through a notification; a slow poll covers lost ones.
//! Followers that fall behind read from the store, so nobody slows the log down.

mod feeder;
mod follower;
mod pages;
mod ring;

pub use follower::Follower;

use crate::log::Cache;
use crate::store::{LogHead, Store, StoreError, StoredEvent};
use converge_domain::Position;
use pages::Pages;
use ring::Ring;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub(crate) struct Shared {
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    poll_interval: Duration,
    ring: Mutex<Ring>,
    pages: Pages,
    /// The frontier, for those who wait.
    head: watch::Sender<Position>,
    /// Counts replacements of the log's history.
    history: watch::Sender<u64>,
    /// What to recognise the log's history by.
    anchor: Mutex<Anchor>,
    /// The database was lost: its history is compared at the next look.
    suspect: AtomicBool,
    /// Something may be there to read.
    look: Notify,
    /// Appends of our own lanes that are under way.
    in_flight: AtomicUsize,
    stopped: watch::Sender<bool>,
}

/// An end of the log that is known to belong to its history.
#[derive(Clone)]
struct Anchor {
    head: LogHead,
    compared: Instant,
}

/// A handle on the stream; cheap to clone.
#[derive(Clone)]
pub struct Tail {
    shared: Arc<Shared>,
}

/// Counts one append as under way while it lives.
pub(crate) struct InFlight(Arc<Shared>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tail {
    pub(crate) async fn start(
        store: Arc<dyn Store>,
        cache: Arc<Cache>,
        poll_interval: Duration,
        ring_events_max: usize,
    ) -> Result<Self, StoreError> {
        let end = store.log_head().await?;
        let shared = Arc::new(Shared {
            store,
            cache,
            poll_interval,
            ring: Mutex::new(Ring::new(end.position, ring_events_max)),
            pages: Pages::default(),
            head: watch::channel(end.position).0,
            history: watch::channel(0).0,
            anchor: Mutex::new(Anchor { head: end, compared: Instant::now() }),
            suspect: AtomicBool::new(false),
            look: Notify::new(),
            in_flight: AtomicUsize::new(0),
            stopped: watch::channel(false).0,
        });
        tokio::spawn(feeder::listen(shared.clone()));
        tokio::spawn(feeder::feed(shared.clone()));
        Ok(Self { shared })
    }

    /// The frontier: everything up to here is known to this process.
    pub fn head(&self) -> Position {
        *self.shared.head.borrow()
    }

    /// Follows the log from the first event after `after`.
    pub fn follow(&self, after: Position) -> Follower {
        Follower::new(self.shared.clone(), after)
    }

    /// Waits until the frontier has reached `position`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the log is shut down before.
    pub async fn wait_for(&self, position: Position) -> Result<(), StoreError> {
        let mut head = self.shared.head.subscribe();
        let mut stopped = self.shared.stopped.subscribe();
        tokio::select! {
            reached = reached(&mut head, position) => reached,
            () = is_set(&mut stopped) => Err(stopped_error()),
        }
    }

    /// Changes when the database turns out to hold another history (after a failover that lost commits, or a
    /// restored backup): everything derived from what was read before must be dropped.
    pub fn history(&self) -> watch::Receiver<u64> {
        self.shared.history.subscribe()
    }

    /// Events that a lane committed, in order and without gaps in themselves.
    pub(crate) fn publish(&self, events: Vec<StoredEvent>) {
        if events.is_empty() {
            return;
        }
        if self.shared.advance(Arc::new(events)) {
            self.shared.look.notify_one();
        }
    }

    pub(crate) fn in_flight(&self) -> InFlight {
        self.shared.in_flight.fetch_add(1, Ordering::SeqCst);
        InFlight(self.shared.clone())
    }

    /// The database was lost and may come back as another one.
    pub(crate) fn suspect(&self) {
        self.shared.suspect.store(true, Ordering::SeqCst);
        self.shared.look.notify_one();
    }

    /// Compares the history now, before a lane publishes anything after an outage.
    pub(crate) async fn check_history(&self) {
        if let Err(error) = self.shared.look_at_end().await {
            tracing::warn!(%error, "the log's history could not be compared yet");
        }
    }

    pub(crate) fn stop(&self) {
        self.shared.stopped.send_replace(true);
    }
}

/// Waits for the frontier. (The value that `wait_for` hands out holds a lock; it must not live across an await.)
async fn reached(head: &mut watch::Receiver<Position>, position: Position) -> Result<(), StoreError> {
    head.wait_for(|at| *at >= position).await.map(drop).map_err(|_| stopped_error())
}

/// Waits for a flag, or for its owner to go.
async fn is_set(flag: &mut watch::Receiver<bool>) {
    drop(flag.wait_for(|set| *set).await);
}

fn stopped_error() -> StoreError {
    StoreError::Unavailable("the log is shut down".to_owned())
}

impl Shared {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes events in; returns whether a gap keeps some of them back.
    fn advance(&self, events: Arc<Vec<StoredEvent>>) -> bool {
        let mut ring = self.ring();
        ring.add(events);
        let (frontier, gap) = (ring.frontier(), ring.has_gap());
        // Under the lock, so that the announced head never goes back.
        self.head.send_if_modified(|head| {
            let moved = *head != frontier;
            *head = frontier;
            moved
        });
        gap
    }
}
