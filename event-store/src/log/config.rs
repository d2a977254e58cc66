//! The log's limits.

use std::time::Duration;

/// Limits of one process's log. Everything is bounded.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Appends in flight at once. Groups hash to lanes by their first aggregate.
    pub lanes: usize,
    /// Groups waiting in one lane before callers are told [`Overloaded`](super::ExecuteError::Overloaded).
    pub queue_groups_max: usize,
    /// Approximate bytes waiting in one lane.
    pub queue_bytes_max: usize,
    /// Groups in one batch.
    pub batch_groups_max: usize,
    /// Approximate bytes of commands in one batch; a single larger group still goes, alone.
    pub batch_bytes_max: usize,
    /// Cached aggregates.
    pub cache_entries_max: usize,
    /// Approximate bytes of cached aggregates.
    pub cache_bytes_max: usize,
    /// Attempts of a group whose heads or guards keep moving.
    pub attempts_max: u32,
    /// Repetitions of a whole batch after a deadlock or lock timeout.
    pub batch_retries_max: u32,
    /// How long a batch waits for an unavailable database before its callers are told.
    pub unavailable_max: Duration,
    /// Longest silence before the tail looks for appends of other processes by itself.
    pub poll_interval: Duration,
    /// Recent events kept in memory for followers.
    pub ring_events_max: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            lanes: 2,
            queue_groups_max: 20_000,
            queue_bytes_max: 64 << 20,
            batch_groups_max: 500,
            batch_bytes_max: 4 << 20,
            cache_entries_max: 50_000,
            cache_bytes_max: 64 << 20,
            attempts_max: 20,
            batch_retries_max: 20,
            unavailable_max: Duration::from_secs(10),
            poll_interval: Duration::from_secs(5),
            ring_events_max: 20_000,
        }
    }
}
