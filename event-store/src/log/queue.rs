//! One lane's queue: bounded by count and bytes, with the groups that are to be tried again in front.

use super::size::command_bytes;
use super::{CommandGroup, Committed, ExecuteError};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// A group and the caller who waits for it.
pub(super) struct Pending {
    pub group: CommandGroup,
    pub reply: oneshot::Sender<Result<Committed, ExecuteError>>,
    pub bytes: usize,
    /// Attempts that ended in a conflict.
    pub attempts: u32,
    /// Not tried again before.
    pub not_before: Option<Instant>,
    /// Decided and appended in a batch of its own: its unit had several groups, and one of them was refused by
    /// the database.
    pub solo: bool,
}

impl Pending {
    pub(super) fn new(group: CommandGroup, reply: oneshot::Sender<Result<Committed, ExecuteError>>) -> Self {
        let bytes = group.steps.iter().map(|(_, command)| command_bytes(command)).sum();
        Self { group, reply, bytes, attempts: 0, not_before: None, solo: false }
    }

    /// Answers the caller. One who has gone away does not care, and nothing was undone for it.
    pub(super) fn answer(self, result: Result<Committed, ExecuteError>) {
        drop(self.reply.send(result));
    }
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Pending>,
    bytes: usize,
    closed: bool,
}

/// The queue of one lane.
pub(super) struct Queue {
    inner: Mutex<Inner>,
    grown: Notify,
    groups_max: usize,
    bytes_max: usize,
}

impl Queue {
    pub(super) fn new(groups_max: usize, bytes_max: usize) -> Self {
        Self { inner: Mutex::default(), grown: Notify::new(), groups_max, bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a group, or says why not.
    pub(super) fn push(&self, pending: Pending) -> Result<(), ExecuteError> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(ExecuteError::Closed);
        }
        if inner.waiting.len() >= self.groups_max
            || (inner.bytes + pending.bytes > self.bytes_max && !inner.waiting.is_empty())
        {
            return Err(ExecuteError::Overloaded);
        }
        inner.bytes += pending.bytes;
        inner.waiting.push_back(pending);
        drop(inner);
        self.grown.notify_one();
        Ok(())
    }

    /// Accepts nothing more; what is queued is still executed.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.grown.notify_one();
    }

    /// Moves the next groups into `batch` until it holds `groups_max` groups or `bytes_max` bytes. Returns false when the
    /// queue is closed and empty.
    pub(super) fn take(&self, batch: &mut Vec<Pending>, groups_max: usize, bytes_max: usize) -> bool {
        let mut inner = self.lock();
        let mut bytes: usize = batch.iter().map(|pending| pending.bytes).sum();
        while batch.len() < groups_max {
            let Some(next) = inner.waiting.front() else { break };
            if !batch.is_empty() && bytes + next.bytes > bytes_max {
                break;
            }
            bytes += next.bytes;
            inner.bytes -= next.bytes;
            batch.extend(inner.waiting.pop_front());
        }
        !(inner.closed && inner.waiting.is_empty())
    }

    /// Waits until something may be there. A notification that came before the call is not lost.
    pub(super) async fn wait(&self) {
        self.grown.notified().await;
    }
}
