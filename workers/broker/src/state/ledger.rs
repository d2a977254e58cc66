//! The claims this broker answers for, each in exactly one state.

use super::WorkerId;
use converge_domain::KindRef;
use converge_engine::dispatch::Fence;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) type Ledger = HashMap<Fence, Entry>;

/// Who has the task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// A connected worker runs it and must attest it. It fills one of that worker's slots.
    Worker(WorkerId),
    /// Its worker's stream is gone. It may come back, here or elsewhere, until the lease is over.
    Adrift { since: Instant },
    /// Its outcome is known and being recorded; no slot, lease or deadline applies any more. The answer
    /// goes to the connection that delivered it last; None: the broker itself decided the outcome.
    Recording { reply_to: Option<WorkerId> },
}

/// When a task is over whether or not it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    /// The whole budget, for the message.
    pub(crate) budget: Duration,
}

/// Lets the pager of a task's large input run ahead of its worker, but not far.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    /// One permit per page that may still be sent.
    pub(crate) window: Arc<Semaphore>,
    /// The claim ended; send no more.
    pub(crate) stop: CancellationToken,
}

impl Pages {
    pub(crate) fn new(window: usize) -> Self {
        Self { window: Arc::new(Semaphore::new(window)), stop: CancellationToken::new() }
    }

    /// The worker consumed a page. Never more than the window, whatever a worker claims to have consumed.
    fn taken(&self, window: usize) {
        if self.window.available_permits() < window {
            self.window.add_permits(1);
        }
    }
}

/// See [`Holder`].
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: KindRef,
    pub(crate) holder: Holder,
    pub(crate) attested_at: Instant,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) pages: Option<Pages>,
}

impl Drop for Entry {
    /// However an entry ends, its pager ends with it.
    fn drop(&mut self) {
        if let Some(pages) = &self.pages {
            pages.stop.cancel();
        }
    }
}

impl super::State {
    /// The worker consumed a page of this task's input.
    pub(crate) fn input_taken(&mut self, worker: WorkerId, fence: Fence) {
        let window = self.config.input_window;
        let held = self.ledger.get(&fence).filter(|entry| entry.holder == Holder::Worker(worker));
        if let Some(pages) = held.and_then(|entry| entry.pages.as_ref()) {
            pages.taken(window);
        }
    }

    /// Whether this worker runs this task now.
    pub(crate) fn is_held_by(&self, worker: WorkerId, fence: &Fence) -> bool {
        self.ledger.get(fence).is_some_and(|entry| entry.holder == Holder::Worker(worker))
    }

    /// The worker says that these make progress. A task that is not its own any more is answered with a cancel,
    /// so that a worker that was away for too long stops what another may already be doing.
    pub(crate) fn attest(&mut self, worker: WorkerId, fences: &[Fence], now: Instant) {
        for fence in fences {
            match self.ledger.get_mut(fence) {
                Some(entry) if entry.holder == Holder::Worker(worker) => entry.attested_at = now,
                Some(Entry { holder: Holder::Recording { .. }, .. }) => {}
                _ => self.cancel_at(worker, *fence, "claim lost"),
            }
        }
    }

    pub(super) fn cancel_at(&self, worker: WorkerId, fence: Fence, reason: &str) {
        if let Some(worker) = self.workers.get(&worker) {
            worker.order(super::Order::Cancel { fence, reason: reason.to_owned() });
        }
    }
}
