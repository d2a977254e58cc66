//! How claims end: by outcome, deadline, silence or the engine's word. Exactly one of them wins.
//!
//! Each ending moves the entry out of `Holder::Worker` or `Adrift` under the lock, so whichever comes second
//! finds nothing to end.

use super::ledger::{Deadline, Entry, Holder};
use super::{Effect, Order, State, WorkerId};
use converge_domain::KindRef;
use converge_engine::dispatch::{DELETION, Fence, TaskOutcome, TaskResult};
use std::time::Duration;
use tokio::time::Instant;

/// What an arriving outcome finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Record it, for this kind.
    Record(KindRef),
    /// It is being recorded; the answer will reach the new connection.
    Already,
}

impl State {
    /// An outcome arrived: the slot is free from this instant. An outcome of a task that this broker never
    /// pushed is recorded too, because the fence is in the store and not here.
    pub(crate) fn take(&mut self, worker: WorkerId, fence: Fence, kind: KindRef, now: Instant) -> Taken {
        let recording = Holder::Recording { reply_to: Some(worker) };
        match self.ledger.get_mut(&fence) {
            Some(entry) if matches!(entry.holder, Holder::Recording { .. }) => {
                entry.holder = recording;
                Taken::Already
            }
            Some(entry) => {
                let holder = std::mem::replace(&mut entry.holder, recording);
                let kind = entry.kind.clone();
                self.vacate(holder, &kind);
                Taken::Record(kind)
            }
            None => {
                let entry = Entry {
                    kind: kind.clone(),
                    holder: recording,
                    attested_at: now,
                    deadline: None,
                    pages: None,
                };
                self.ledger.insert(fence, entry);
                Taken::Record(kind)
            }
        }
    }

    /// The store has the outcome.
    pub(crate) fn recorded(&mut self, fence: Fence, accepted: bool) {
        let Some(entry) = self.ledger.remove(&fence) else { return };
        if let Holder::Recording { reply_to: Some(worker) } = entry.holder
            && let Some(worker) = self.workers.get(&worker)
        {
            worker.order(Order::Received { fence, accepted });
        }
    }

    /// The store would not take the outcome in any number of attempts. Its worker still has it: the stream is
    /// closed so that it delivers again, perhaps to a broker that reaches the database.
    pub(crate) fn not_recorded(&mut self, fence: Fence, now: Instant) {
        let Some(entry) = self.ledger.get_mut(&fence) else { return };
        let holder = std::mem::replace(&mut entry.holder, Holder::Adrift { since: now });
        if let Holder::Recording { reply_to: Some(worker) } = holder
            && let Some(worker) = self.workers.get(&worker)
        {
            worker.close(tonic::Status::unavailable("an outcome could not be recorded; deliver it again"));
        }
    }

    /// The engine ended the claim by itself (another process did), or its resource is going away. In that case the claim is live and
    /// stays in the ledger: only an answer ends it, or a lease that nobody attests any more. Forgotten here, it would
    /// never end, and the teardown wait for it for ever.
    pub(crate) fn cancelled(&mut self, fence: Fence, reason: &str) {
        if reason == DELETION {
            if let Some(Holder::Worker(worker)) = self.ledger.get(&fence).map(|entry| entry.holder) {
                self.cancel_at(worker, fence, reason);
            }
            return;
        }
        match self.ledger.get(&fence).map(|entry| entry.holder) {
            Some(Holder::Worker(worker)) => {
                self.forget(fence);
                self.cancel_at(worker, fence, reason);
            }
            Some(Holder::Adrift { .. }) => self.forget(fence),
            Some(Holder::Recording { .. }) | None => {}
        }
    }

    /// The input of a task could not be read to its end: the task is stopped and dispatched again.
    pub(crate) fn input_failed(&mut self, fence: Fence, reason: String) {
        if let Some(Holder::Worker(worker)) = self.ledger.get(&fence).map(|entry| entry.holder) {
            self.forget(fence);
            self.cancel_at(worker, fence, &reason);
            self.release(fence, reason);
        }
    }

    /// Wakes the lease loop when this deadline comes before its next look.
    pub(super) fn announce_end(&mut self, deadline: Option<Deadline>) {
        let Some(deadline) = deadline else { return };
        if self.next_look.is_none_or(|look| deadline.at < look) {
            self.effects.push(Effect::NearerEnd);
        }
    }

    /// Ends what is out of time, and answers when to look again: at the earliest known end, and at the latest after
    /// an eighth of a lease, so that a task which starts meanwhile is seen long before its own lease is over.
    pub(crate) fn expire(&mut self, now: Instant) -> Instant {
        let lease = self.config.lease;
        let mut next = now + lease / 8;
        let mut over = Vec::new();
        for (fence, entry) in &self.ledger {
            let silent_at = match entry.holder {
                Holder::Worker(_) => entry.attested_at + lease,
                Holder::Adrift { since } => since + lease,
                Holder::Recording { .. } => continue,
            };
            // A deadline is a fact about the task and wins over a fact about its worker at the same instant.
            let missed = entry.deadline.filter(|deadline| deadline.at <= now);
            if missed.is_some() || silent_at <= now {
                over.push((*fence, entry.holder, missed.map(|deadline| deadline.budget)));
            } else {
                let due = entry.deadline.map_or(silent_at, |deadline| silent_at.min(deadline.at));
                next = next.min(due);
            }
        }
        for (fence, holder, missed) in over {
            match missed {
                Some(budget) => self.miss_deadline(fence, holder, budget),
                None => self.expire_silent(fence, holder),
            }
        }
        self.next_look = Some(next);
        next
    }

    /// The broker itself was stopped for a while (a suspended process or machine): heartbeats wait unread in
    /// its sockets, so silence proves nothing. Everyone gets a fresh lease.
    pub(crate) fn forgive_silence(&mut self, now: Instant) {
        for entry in self.ledger.values_mut() {
            entry.attested_at = now;
            if let Holder::Adrift { since } = &mut entry.holder {
                *since = now;
            }
        }
    }

    fn miss_deadline(&mut self, fence: Fence, holder: Holder, budget: Duration) {
        let Some(entry) = self.ledger.get_mut(&fence) else { return };
        entry.holder = Holder::Recording { reply_to: None };
        let kind = entry.kind.clone();
        let message = format!("task deadline of {} s exceeded", seconds(budget));
        let result = TaskResult::Failure { message, terminal: false, status: None };
        self.effects.push(Effect::Record(TaskOutcome { fence, kind: kind.clone(), result }));
        self.vacate(holder, &kind);
        if let Holder::Worker(worker) = holder {
            self.cancel_at(worker, fence, "deadline");
        }
    }

    fn expire_silent(&mut self, fence: Fence, holder: Holder) {
        self.forget(fence);
        if let Holder::Worker(worker) = holder {
            self.cancel_at(worker, fence, "claim lost");
            self.release(fence, "the worker did not attest its progress");
        } else {
            self.release(fence, "the worker did not come back");
        }
    }

    /// Drops an entry and frees its slot.
    pub(super) fn forget(&mut self, fence: Fence) {
        if let Some(entry) = self.ledger.remove(&fence) {
            let kind = entry.kind.clone();
            self.vacate(entry.holder, &kind);
        }
    }

    fn vacate(&mut self, holder: Holder, kind: &KindRef) {
        if let Holder::Worker(worker) = holder
            && let Some(worker) = self.workers.get_mut(&worker)
        {
            worker.vacate(kind, 1);
            self.claimable();
        }
    }
}

/// `5` for whole seconds, else `0.25`.
fn seconds(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        duration.as_secs().to_string()
    } else {
        duration.as_secs_f64().to_string()
    }
}
