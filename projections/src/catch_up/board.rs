//! How far each projection is, for readers that wait and for health.

use converge_domain::Position;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// What a projection's runner is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunState {
    /// Not yet connected, or between two tries.
    Starting,
    /// Another process runs it; this one watches.
    Standby,
    /// It applies batches.
    Live,
    /// It met an event that it cannot apply, and stands before it until somebody acts.
    Stopped { reason: String },
}

/// A projection's place and health.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Everything up to here is in its rows.
    pub position: Position,
    pub state: RunState,
}

/// Why a wait ended without the position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WaitError {
    #[error("projection {name} stopped at position {position}: {reason}")]
    Stopped { name: String, position: Position, reason: String },
    #[error("projection {name} is at position {position} and did not reach {wanted} in time")]
    TimedOut { name: String, position: Position, wanted: Position },
    #[error("no projection {0} runs here")]
    Unknown(String),
}

/// All projections of this process. Cheap to clone; clones share.
#[derive(Clone, Default)]
pub struct Board {
    entries: Arc<Mutex<BTreeMap<&'static str, watch::Sender<Progress>>>>,
}

impl Board {
    /// The sender for `name`, made on first use. Its runner alone writes to it.
    pub(crate) fn entry(&self, name: &'static str) -> watch::Sender<Progress> {
        self.lock()
            .entry(name)
            .or_insert_with(|| {
                watch::Sender::new(Progress { position: Position(0), state: RunState::Starting })
            })
            .clone()
    }

    /// Announces a projection before its runner starts, so that readers wait for it instead of failing.
    pub fn announce(&self, name: &'static str) {
        self.entry(name);
    }

    /// Where `name` is now; None: it does not run here.
    pub fn progress(&self, name: &str) -> Option<Progress> {
        self.lock().get(name).map(|sender| sender.borrow().clone())
    }

    /// Every projection that stopped, with its reason.
    pub fn stopped(&self) -> Vec<(&'static str, Position, String)> {
        self.lock()
            .iter()
            .filter_map(|(name, sender)| {
                let progress = sender.borrow();
                match &progress.state {
                    RunState::Stopped { reason } => Some((*name, progress.position, reason.clone())),
                    _ => None,
                }
            })
            .collect()
    }

    /// Watches one projection's place; None: it does not run here.
    pub fn position(&self, name: &str) -> Option<watch::Receiver<Progress>> {
        self.lock().get(name).map(watch::Sender::subscribe)
    }

    /// Waits until `name` has applied everything up to `wanted`.
    ///
    /// # Errors
    /// When it stopped short of it, when `within` passes first, or when it does not run here.
    pub async fn wait(&self, name: &str, wanted: Position, within: Duration) -> Result<Position, WaitError> {
        let Some(mut receiver) = self.position(name) else {
            return Err(WaitError::Unknown(name.to_owned()));
        };
        let arrived = receiver.wait_for(|progress| {
            progress.position >= wanted || matches!(progress.state, RunState::Stopped { .. })
        });
        // A closed channel is impossible while the board holds a sender; treat it as the timeout it would be.
        let seen = match tokio::time::timeout(within, arrived).await {
            Ok(Ok(progress)) => Some(progress.clone()),
            Ok(Err(_)) | Err(_) => None,
        };
        match seen {
            Some(progress) if progress.position >= wanted => Ok(progress.position),
            Some(Progress { position, state: RunState::Stopped { reason } }) => {
                Err(WaitError::Stopped { name: name.to_owned(), position, reason })
            }
            _ => Err(WaitError::TimedOut {
                name: name.to_owned(),
                position: receiver.borrow().position,
                wanted,
            }),
        }
    }

    /// The map holds no invariant that a panic elsewhere could break, so a poisoned lock is taken as it is.
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, watch::Sender<Progress>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
