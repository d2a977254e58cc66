//! Which kind versions have a ready worker, here and at every other broker.
//!
//! This is operational state and never part of the log: each process tells it with its beat, and `why` reads it when it is
//! asked. A change is told at once, so that what `why` says is late by a round trip and not by a beat.

use crate::engine::Core;
use converge_domain::KindRef;
use converge_event_store::StoreError;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// What the workers connected to this process serve.
#[derive(Default)]
pub(crate) struct Served {
    kinds: Mutex<HashMap<KindRef, usize>>,
    changed: Notify,
}

impl Served {
    /// Replaces it, with the number of ready workers for each kind version.
    pub fn set(&self, served: Vec<(KindRef, usize)>) {
        *self.kinds.lock().unwrap_or_else(PoisonError::into_inner) = served.into_iter().collect();
        self.changed.notify_one();
    }

    /// Completes when it was replaced since the last call.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The kind versions that at least one ready worker serves, ordered.
    pub fn words(&self) -> Vec<String> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words: Vec<_> =
            kinds.iter().filter(|(_, workers)| **workers > 0).map(|(kind, _)| kind.to_string()).collect();
        words.sort();
        words
    }
}

impl Core {
    /// Whether a ready worker serves the kind version at any live broker, this process or another.
    ///
    /// # Errors
    /// When the members cannot be read.
    pub async fn is_served(&self, kind: &KindRef) -> Result<bool, StoreError> {
        let word = kind.to_string();
        if self.served.words().contains(&word) {
            return Ok(true);
        }
        let lease_ms = i64::try_from(self.config.lease.as_millis()).unwrap_or(i64::MAX);
        let members = self.store.members().await?;
        Ok(members.iter().any(|(member, age_ms)| {
            member.session != self.session && *age_ms < lease_ms && member.served.contains(&word)
        }))
    }
}
