//! One connected worker: what it offers, how many slots it has, how to reach it.

use converge_domain::KindRef;
use converge_engine::dispatch::{Fence, Task};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Names a connection inside this process; never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct WorkerId(pub(crate) u64);

/// One provider that a worker hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    pub(crate) target: OfferTarget,
    pub(crate) ready: bool,
}

/// What a provider serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OfferTarget {
    /// A kind whose manifest names no other provider; no versions means all.
    Kind { kind: String, versions: Vec<u16> },
    /// Every kind whose manifest names this provider.
    Provider(String),
}

impl Offer {
    fn matches(&self, kind: &KindRef, provider: &str) -> bool {
        match &self.target {
            OfferTarget::Kind { kind: name, versions } => {
                *name == kind.kind
                    && provider == kind.kind
                    && (versions.is_empty() || versions.contains(&kind.kind_version))
            }
            OfferTarget::Provider(name) => name == provider,
        }
    }
}

/// What the session's writer is told to send.
#[derive(Debug)]
pub(crate) enum Order {
    Task {
        task: Box<Task>,
        /// When the broker got it; the deadline that travels is what is left of it.
        claimed_at: Instant,
        pages: Option<super::Pages>,
    },
    Cancel {
        fence: Fence,
        reason: String,
    },
    Received {
        fence: Fence,
        accepted: bool,
    },
    /// The default config of this kind may have changed.
    Config(KindRef),
}

/// Ends a stream from anywhere, with the reason that the worker will see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closer {
    token: CancellationToken,
    status: Arc<OnceLock<Status>>,
}

impl Closer {
    /// The first reason given is the one that is told.
    pub(crate) fn close(&self, status: Status) {
        let _ = self.status.set(status);
        self.token.cancel();
    }

    pub(crate) async fn closed(&self) {
        self.token.cancelled().await;
    }

    /// Why; None while open, or when it ended by agreement.
    pub(crate) fn status(&self) -> Option<Status> {
        self.status.get().filter(|status| status.code() != tonic::Code::Ok).cloned()
    }
}

/// See the module.
pub(crate) struct Worker {
    pub(crate) identity: String,
    pub(crate) slots: usize,
    offers: Vec<Offer>,
    /// Kind versions it serves, with their readiness; derived from `offers` and the catalog.
    serves: BTreeMap<KindRef, bool>,
    /// Resuming its old tasks; takes no new ones yet.
    pub(super) joining: bool,
    pub(super) draining: bool,
    /// Slots taken or reserved, in all and per kind.
    used: usize,
    in_use: HashMap<KindRef, usize>,
    /// Kinds with a claim in flight for this worker. One at a time: while it runs, freed slots gather into the next.
    pub(super) claiming: HashSet<KindRef>,
    orders: mpsc::Sender<Order>,
    closer: Closer,
}

impl Worker {
    pub(super) fn new(
        identity: String,
        slots: usize,
        offers: Vec<Offer>,
        orders: mpsc::Sender<Order>,
        closer: Closer,
    ) -> Self {
        Self {
            identity,
            slots,
            offers,
            serves: BTreeMap::new(),
            joining: true,
            draining: false,
            used: 0,
            in_use: HashMap::new(),
            claiming: HashSet::new(),
            orders,
            closer,
        }
    }

    /// Derives what it serves; answers the kinds that it serves now and did not before, then the newly ready ones.
    pub(super) fn rematch(
        &mut self,
        offers: Option<Vec<Offer>>,
        catalog: &[(KindRef, String)],
    ) -> (Vec<KindRef>, Vec<KindRef>) {
        if let Some(offers) = offers {
            self.offers = offers;
        }
        let mut serves = BTreeMap::new();
        for (kind, provider) in catalog {
            let mut matching = self.offers.iter().filter(|offer| offer.matches(kind, provider)).peekable();
            if matching.peek().is_some() {
                serves.insert(kind.clone(), matching.any(|offer| offer.ready));
            }
        }
        let before = std::mem::replace(&mut self.serves, serves);
        let appeared = self.serves.keys().filter(|kind| !before.contains_key(*kind)).cloned().collect();
        let now_ready = self
            .serves
            .iter()
            .filter(|(kind, ready)| **ready && before.get(*kind) != Some(&true))
            .map(|(kind, _)| kind.clone())
            .collect();
        (appeared, now_ready)
    }

    pub(super) fn takes_work(&self) -> bool {
        !self.joining && !self.draining
    }

    pub(super) fn serves(&self, kind: &KindRef) -> bool {
        self.serves.contains_key(kind)
    }

    pub(super) fn is_ready_for(&self, kind: &KindRef) -> bool {
        self.serves.get(kind) == Some(&true)
    }

    pub(super) fn ready(&self) -> impl Iterator<Item = &KindRef> {
        self.serves.iter().filter(|(_, ready)| **ready).map(|(kind, _)| kind)
    }

    pub(super) fn free(&self) -> usize {
        self.slots.saturating_sub(self.used)
    }

    pub(super) fn in_use_by(&self, kind: &KindRef) -> usize {
        self.in_use.get(kind).copied().unwrap_or(0)
    }

    pub(super) fn occupy(&mut self, kind: &KindRef, count: usize) {
        self.used += count;
        *self.in_use.entry(kind.clone()).or_default() += count;
    }

    pub(super) fn vacate(&mut self, kind: &KindRef, count: usize) {
        self.used = self.used.saturating_sub(count);
        if let Some(used) = self.in_use.get_mut(kind) {
            *used = used.saturating_sub(count);
            if *used == 0 {
                self.in_use.remove(kind);
            }
        }
    }

    /// Hands the writer an order. The queue holds more orders than a worker that reads can ever be behind, so a
    /// full one means that it does not read: its stream is closed, and its tasks wait for it to come back.
    pub(super) fn order(&self, order: Order) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.orders.try_send(order) {
            self.closer.close(Status::resource_exhausted("the worker does not read its stream"));
        }
    }

    /// Ends its stream with a reason.
    pub(super) fn close(&self, status: Status) {
        self.closer.close(status);
    }
}
