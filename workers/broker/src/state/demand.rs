//! Which kinds may have due work.

use super::State;
use converge_domain::KindRef;

/// What is known about one kind version's queue.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// A claim might find something.
    pub(super) hungry: bool,
    /// Counts wakeups, so that one that arrives while a claim is in flight outlives that claim's empty answer.
    pub(super) wakes: u64,
    /// The engine failed to claim; a timer will wake the kind.
    pub(super) parked: bool,
    /// Failures in a row.
    pub(super) failures: u32,
    /// The turn in which it last got a slot.
    pub(super) served_at: u64,
}

impl State {
    /// The kind's queue may have grown.
    pub(crate) fn wake(&mut self, kind: &KindRef) {
        let demand = match self.demand.get_mut(kind) {
            Some(demand) => demand,
            None => self.demand.entry(kind.clone()).or_default(),
        };
        demand.hungry = true;
        demand.wakes += 1;
        self.claimable();
    }

    /// Any queue may have grown: wakeups were missed.
    pub(crate) fn wake_all(&mut self) {
        for (kind, _) in self.catalog.clone() {
            self.wake(&kind);
        }
    }

    /// The pause after a failed claim is over.
    pub(crate) fn unpark(&mut self, kind: &KindRef) {
        if let Some(demand) = self.demand.get_mut(kind) {
            demand.parked = false;
        }
        self.wake(kind);
    }

    /// The engine's kinds, fresh. Workers get the default configs of kinds that they serve from now on.
    pub(crate) fn learn_kinds(&mut self, catalog: Vec<(KindRef, String)>) {
        if catalog == self.catalog {
            return;
        }
        self.catalog = catalog;
        self.demand.retain(|kind, _| self.catalog.iter().any(|(known, _)| known == kind));
        let ids: Vec<_> = self.workers.keys().copied().collect();
        for id in ids {
            self.rematch(id, None);
        }
    }

    /// A kind's default config changed: everyone who serves it hears so.
    pub(crate) fn config_changed(&mut self, kind: &KindRef) {
        for worker in self.workers.values().filter(|worker| worker.serves(kind)) {
            worker.order(super::Order::Config(kind.clone()));
        }
    }
}
