//! The broker's limits in one place: every queue, wait and batch of this crate is bounded by a field of it.

use std::time::Duration;

/// Limits and periods. [`Default`] suits production.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// How long a task may go without being attested, and how long the tasks of a lost stream wait for their
    /// worker to come back, before they are given to another.
    pub lease: Duration,
    /// How long a new stream may take to subscribe.
    pub subscribe_timeout: Duration,
    /// Most slots a worker is granted, whatever it asks for.
    pub slots_max: usize,
    /// Most tasks taken by one claim.
    pub claim_batch_max: usize,
    /// Pages of a task's input sent ahead of the worker's acknowledgements.
    pub input_window: usize,
    /// How often an engine call is tried, with growing pauses, before the broker gives up on it.
    pub attempts_max: u32,
    /// First pause between attempts; doubles, with jitter, up to [`Self::backoff_max`].
    pub backoff_min: Duration,
    /// Longest pause between attempts.
    pub backoff_max: Duration,
    /// How long a stopping broker waits for outcomes that it is recording.
    pub shutdown_grace: Duration,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            subscribe_timeout: Duration::from_secs(10),
            slots_max: 4096,
            claim_batch_max: 128,
            input_window: 8,
            attempts_max: 10,
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

impl BrokerConfig {
    /// How often workers are asked to beat: three beats fit in a lease, so that one lost beat costs nothing.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.lease / 3
    }
}
