//! The broker's memory as plain data: who is connected, what runs where, which kinds have work.
//!
//! Nothing here awaits, reads a clock or calls the engine: methods take `now` and leave [`Effect`]s behind, which
//! the caller performs after the lock is gone. So every rule about slots, leases and fairness is tested without
//! a network, and the lock is never held across an await.

mod claiming;
mod demand;
mod ending;
mod fairness;
mod joining;
mod ledger;
mod worker;

#[cfg(test)]
mod tests;

pub(crate) use claiming::ClaimJob;
pub(crate) use ending::Taken;
pub(crate) use ledger::Pages;
pub(crate) use worker::{Closer, Offer, OfferTarget, Order, WorkerId};

use crate::config::BrokerConfig;
use converge_domain::KindRef;
use converge_engine::dispatch::{Fence, TaskOutcome};
use demand::Demand;
use ledger::Ledger;
use std::collections::{BTreeMap, HashMap};
use tokio::time::Instant;
use worker::Worker;

/// What a change of the memory asks of the outside.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A claim may have become possible.
    Claimable,
    /// A task started whose deadline comes before the next look at the ledger.
    NearerEnd,
    /// End this claim so that the task is dispatched again.
    Release { fence: Fence, reason: String },
    /// Record an outcome that the broker itself decided (a missed deadline).
    Record(TaskOutcome),
}

/// See the module.
pub(crate) struct State {
    config: BrokerConfig,
    /// Every kind version with the provider that serves it, as the engine last said.
    catalog: Vec<(KindRef, String)>,
    workers: HashMap<WorkerId, Worker>,
    demand: HashMap<KindRef, Demand>,
    ledger: Ledger,
    effects: Vec<Effect>,
    /// What `report_served` last said.
    reported: BTreeMap<KindRef, usize>,
    workers_ever: u64,
    /// When `expire` will look next unless it is woken; None before its first look.
    next_look: Option<Instant>,
    /// Counts slots given out; orders kinds by who was served least recently.
    turn: u64,
}

impl State {
    pub(crate) fn new(config: BrokerConfig, catalog: Vec<(KindRef, String)>) -> Self {
        Self {
            config,
            catalog,
            workers: HashMap::new(),
            demand: HashMap::new(),
            ledger: Ledger::default(),
            effects: Vec::new(),
            reported: BTreeMap::new(),
            workers_ever: 0,
            next_look: None,
            turn: 0,
        }
    }

    /// What has been asked for since the last call.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Ready workers per kind version, when it differs from what was last told.
    pub(crate) fn served_if_changed(&mut self) -> Option<Vec<(KindRef, usize)>> {
        let mut served = BTreeMap::<KindRef, usize>::new();
        for worker in self.workers.values().filter(|worker| worker.takes_work()) {
            for kind in worker.ready() {
                *served.entry(kind.clone()).or_default() += 1;
            }
        }
        if served == self.reported {
            return None;
        }
        self.reported.clone_from(&served);
        Some(served.into_iter().collect())
    }

    fn claimable(&mut self) {
        if !matches!(self.effects.last(), Some(Effect::Claimable)) {
            self.effects.push(Effect::Claimable);
        }
    }

    fn release(&mut self, fence: Fence, reason: impl Into<String>) {
        self.effects.push(Effect::Release { fence, reason: reason.into() });
    }
}
