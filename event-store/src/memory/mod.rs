//! The store as a struct behind a mutex: the semantics of PostgreSQL without its costs, for tests and simulation.
//!
//! The conformance suite runs the same cases against both, so whatever is tested on this one holds there.

mod append;
mod store;
mod tables;

use crate::codec::{Identity, PayloadCodec};
use crate::store::StoreError;
use converge_domain::{BatchId, Timestamp};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tables::Tables;
use tokio::time::Instant;

/// What the next append does instead of its work; for tests of the executor.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Fails with this error; nothing is written.
    Fail(StoreError),
    /// Commits, then reports the outcome as unknown.
    LoseAnswer,
    /// Writes nothing, and reports the outcome as unknown.
    LoseCall,
}

/// The content of a store at a moment.
pub struct Snapshot(Tables);

/// A store in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
    faults: Arc<Mutex<std::collections::VecDeque<Fault>>>,
    appended: Arc<tokio::sync::Notify>,
    codec: Arc<dyn PayloadCodec>,
    /// Its clock: the instant it was made at, and the host's time then. It goes on with the runtime's clock, so that
    /// a test which pauses or advances that one moves this one too.
    made: (Instant, i64),
    /// Microseconds by which its clock is ahead of the host's.
    skew_us: Arc<AtomicI64>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            tables: Arc::default(),
            faults: Arc::default(),
            appended: Arc::default(),
            codec: Arc::new(Identity),
            made: (Instant::now(), chrono::Utc::now().timestamp_micros()),
            skew_us: Arc::default(),
        }
    }

    /// Queues a fault: each append consumes one.
    pub fn inject(&self, fault: Fault) {
        self.faults.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push_back(fault);
    }

    /// Moves this store's clock by `ms` against the host's.
    pub fn shift_clock(&self, ms: i64) {
        self.skew_us.fetch_add(ms.saturating_mul(1000), Ordering::SeqCst);
    }

    /// What the store holds now, to be restored later: how a failover loses commits.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.tables().clone())
    }

    /// Puts an earlier content back.
    pub fn restore(&self, snapshot: &Snapshot) {
        *self.tables() = snapshot.0.clone();
    }

    fn next_fault(&self) -> Option<Fault> {
        self.faults.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn now_us(&self) -> i64 {
        let (made, at_us) = self.made;
        let elapsed_us = i64::try_from(made.elapsed().as_micros()).unwrap_or(i64::MAX);
        at_us.saturating_add(elapsed_us).saturating_add(self.skew_us.load(Ordering::SeqCst))
    }

    fn now_ms(&self) -> Timestamp {
        Timestamp(self.now_us().div_euclid(1000))
    }

    const fn unknown(batch_id: BatchId) -> StoreError {
        StoreError::OutcomeUnknown(batch_id)
    }
}
