//! What the tasks of one broker share: the engine, the memory, the limits.

use crate::backoff::retry;
use crate::config::BrokerConfig;
use crate::state::{Effect, State};
use converge_engine::dispatch::Dispatch;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// One per broker.
pub(crate) struct Shared {
    pub(crate) dispatch: Arc<dyn Dispatch>,
    pub(crate) config: BrokerConfig,
    state: Mutex<State>,
    /// Told whenever a claim may have become possible: a slot freed, a kind woke, a worker became ready.
    pub(crate) claimable: Notify,
    /// Told whenever a task was sent or resumed: the earliest end of any may have moved nearer.
    pub(crate) nearer_end: Notify,
    pub(crate) shutdown: CancellationToken,
    /// Everything that must end before the broker does: recordings, releases, claims in flight.
    pub(crate) obligations: TaskTracker,
}

impl Shared {
    pub(crate) fn new(
        dispatch: Arc<dyn Dispatch>,
        config: BrokerConfig,
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        let state = Mutex::new(State::new(config.clone(), dispatch.served_kinds()));
        Arc::new(Self {
            dispatch,
            config,
            state,
            claimable: Notify::new(),
            nearer_end: Notify::new(),
            shutdown,
            obligations: TaskTracker::new(),
        })
    }

    /// The memory. A panic while it was held cannot have left a half-made change that matters: every field is
    /// re-derived from the store when a worker reconnects, so poison is ignored rather than spread.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the memory, then does what the change asks for. The engine hears which kinds are served while the
    /// lock is held, so that two changes cannot report in the wrong order.
    pub(crate) fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> T) -> T {
        let (value, effects) = {
            let mut state = self.state();
            let value = change(&mut state);
            if let Some(served) = state.served_if_changed() {
                self.dispatch.report_served(served);
            }
            (value, state.take_effects())
        };
        for effect in effects {
            self.perform(effect);
        }
        value
    }

    fn perform(self: &Arc<Self>, effect: Effect) {
        match effect {
            Effect::Claimable => self.claimable.notify_one(),
            Effect::NearerEnd => self.nearer_end.notify_one(),
            Effect::Release { fence, reason } => {
                let shared = Arc::clone(self);
                self.obligations.spawn(async move {
                    let released =
                        retry(&shared.config, "release", || shared.dispatch.release(fence, reason.clone()));
                    if let Err(error) = released.await {
                        // The claim's lease in the store ends it instead.
                        tracing::warn!(?fence, %error, "a claim was not released");
                    }
                });
            }
            Effect::Record(outcome) => {
                let shared = Arc::clone(self);
                self.obligations.spawn(async move { crate::record::record(&shared, outcome).await });
            }
        }
    }
}
