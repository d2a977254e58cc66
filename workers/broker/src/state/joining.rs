//! Workers come, change what they offer, and go.

use super::ledger::{Deadline, Entry, Holder};
use super::worker::Worker;
use super::{Closer, Offer, Order, State, WorkerId};
use converge_domain::KindRef;
use converge_engine::dispatch::Fence;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

impl State {
    /// A worker subscribed. It takes no new work until [`Self::joined`], so that tasks it resumes find their slots.
    pub(crate) fn join(
        &mut self,
        identity: String,
        slots: usize,
        offers: Vec<Offer>,
        orders: mpsc::Sender<Order>,
        closer: Closer,
    ) -> WorkerId {
        self.workers_ever += 1;
        let id = WorkerId(self.workers_ever);
        let slots = slots.clamp(1, self.config.slots_max);
        self.workers.insert(id, Worker::new(identity, slots, offers, orders, closer));
        self.rematch(id, None);
        self.count_workers();
        id
    }

    /// Its old tasks are settled; from now on it gets new ones.
    pub(crate) fn joined(&mut self, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.joining = false;
        let ready: Vec<KindRef> = worker.ready().cloned().collect();
        for kind in &ready {
            self.wake(kind);
        }
    }

    /// The worker's offers or the catalog changed.
    pub(crate) fn rematch(&mut self, id: WorkerId, offers: Option<Vec<Offer>>) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let (appeared, now_ready) = worker.rematch(offers, &self.catalog);
        for kind in appeared {
            worker.order(Order::Config(kind));
        }
        for kind in &now_ready {
            self.wake(kind);
        }
    }

    /// The store confirmed that this worker goes on with the task. The broker may know it already: adrift, or held
    /// by an older connection of the same worker that has not been noticed to be dead. Then its own account of
    /// kind and deadline stands, else the worker's.
    pub(crate) fn adopt(
        &mut self,
        id: WorkerId,
        fence: Fence,
        kind: KindRef,
        left: Option<Duration>,
        now: Instant,
    ) {
        if !self.workers.contains_key(&id) {
            return;
        }
        let known = self.ledger.remove(&fence);
        let (kind, deadline) = match &known {
            // Its outcome came over the old stream and is being recorded; the redelivery will find that.
            Some(Entry { holder: Holder::Recording { .. }, .. }) => {
                self.ledger.extend(known.map(|entry| (fence, entry)));
                return;
            }
            Some(entry) => {
                if let Holder::Worker(old) = entry.holder
                    && let Some(old) = self.workers.get_mut(&old)
                {
                    old.vacate(&entry.kind, 1);
                }
                (entry.kind.clone(), entry.deadline)
            }
            None => (kind, left.map(|budget| Deadline { at: now + budget, budget })),
        };
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.occupy(&kind, 1);
        }
        self.announce_end(deadline);
        let holder = Holder::Worker(id);
        self.ledger.insert(fence, Entry { kind, holder, attested_at: now, deadline, pages: None });
    }

    /// The fence is dead: forget the task and tell the worker to stop it.
    pub(crate) fn refuse(&mut self, id: WorkerId, fence: Fence) {
        if let Some(Entry { holder: Holder::Adrift { .. }, .. }) = self.ledger.get(&fence) {
            self.ledger.remove(&fence);
        }
        self.cancel_at(id, fence, "claim lost");
    }

    /// It takes no new work; what it gives back goes to others at once.
    pub(crate) fn drain(&mut self, id: WorkerId, released: &[Fence]) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.draining = true;
        }
        for fence in released {
            if self.is_held_by(id, fence) {
                self.forget(*fence);
                self.release(*fence, "the worker gave it back");
            }
        }
    }

    /// Its stream is gone. What it ran stays claimed for one lease, because it may be running still.
    pub(crate) fn lost(&mut self, id: WorkerId, now: Instant) {
        self.workers.remove(&id);
        for entry in self.ledger.values_mut().filter(|entry| entry.holder == Holder::Worker(id)) {
            entry.holder = Holder::Adrift { since: now };
            if let Some(pages) = &entry.pages {
                pages.stop.cancel();
            }
        }
        self.count_workers();
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge of far fewer than 2^52 workers")]
    fn count_workers(&self) {
        metrics::gauge!("converge_workers_connected").set(self.workers.len() as f64);
    }
}
