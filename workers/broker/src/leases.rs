//! Ends tasks that make no progress or are out of time.
//!
//! The loop sleeps until the ledger's next end; a task whose deadline comes before that wakes it.

use crate::shared::Shared;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};

/// Runs until shutdown.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut planned = Instant::now();
    loop {
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            () = sleep_until(planned) => {}
            () = shared.nearer_end.notified() => {}
        }
        let now = Instant::now();
        let overslept = now.saturating_duration_since(planned) > shared.config.lease / 2;
        planned = shared.change(|state| {
            if overslept {
                tracing::warn!("this process was stopped for a while; leases start anew");
                state.forgive_silence(now);
            }
            state.expire(now)
        });
    }
}
