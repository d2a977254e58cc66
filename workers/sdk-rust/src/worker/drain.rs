//! The end of a worker: finish within the budget, give back the rest, deliver everything, then go.

use super::Core;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Beyond the budget, how long delivering what is done may take.
const DELIVERY_GRACE: Duration = Duration::from_secs(5);
/// How often the last parcels are looked at; only while stopping.
const LOOK: Duration = Duration::from_millis(10);

/// Waits for `shutdown`, then for an orderly end, then says `finished`.
pub(super) async fn run(core: Arc<Core>, shutdown: CancellationToken, finished: CancellationToken) {
    shutdown.cancelled().await;
    core.jobs.start_draining();
    let budget = core.settings.drain_timeout;
    let mut counts = core.jobs.counts();
    if tokio::time::timeout(budget, counts.wait_for(|count| count.running == 0)).await.is_err() {
        tracing::warn!(running = core.jobs.count().running, "the drain budget is over; giving tasks back");
        core.jobs.give_back();
    }
    let delivered = async {
        // Without a connection and without a job there is no one to tell and nothing to tell.
        let idle = || !core.connected.load(Ordering::Relaxed) && core.jobs.count().all == 0;
        while !core.jobs.is_empty() && !idle() {
            tokio::time::sleep(LOOK).await;
        }
    };
    if tokio::time::timeout(DELIVERY_GRACE, delivered).await.is_err() {
        tracing::warn!(outcomes = core.jobs.count().all, "stopping with outcomes undelivered");
    }
    finished.cancel();
}
