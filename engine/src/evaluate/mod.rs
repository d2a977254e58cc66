//! The evaluator: wakes are coalesced, read in batches, and decided by domain code.
//!
//! A resource is in at most one running batch of this process, and a wake that arrives meanwhile runs after
//! it: so the last wake always leads to a read that began after it. Two processes may evaluate the same
//! resource; compare-and-set and guards make one of them look again.

mod facts;
mod propagate;
mod queue;
mod run;

pub(crate) use queue::Touch;

use crate::compose::{Passes, collect_configs_of_gone};
use crate::engine::Core;
use converge_domain::ResourceId;
use queue::WakeQueue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Resources evaluated in one batch of reads.
const BATCH: usize = 512;
/// Batches in flight at once: one reads while another commits.
const BATCHES_IN_FLIGHT: usize = 3;
/// Rows read per page when a starting process wakes what is not settled.
const RECOVERY_PAGE: u32 = 1000;

/// Cheap to clone; all clones feed the same queue.
#[derive(Clone)]
pub(crate) struct Evaluator {
    shared: Arc<Shared>,
}

/// What the evaluator's tasks share.
pub(crate) struct Shared {
    core: Arc<Core>,
    queue: WakeQueue,
    passes: Passes,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Evaluator {
    /// Starts the evaluating loop.
    pub fn start(core: Arc<Core>, tracker: &TaskTracker, stop: CancellationToken) -> Self {
        let shared = Arc::new(Shared {
            core,
            queue: WakeQueue::default(),
            passes: Passes::default(),
            tracker: tracker.clone(),
            stop,
        });
        let looping = shared.clone();
        tracker.spawn(async move { looping.run().await });
        Self { shared }
    }

    /// Wakes resources.
    pub fn touch(&self, touches: impl IntoIterator<Item = (ResourceId, Touch)>) {
        self.shared.queue.push(touches);
    }

    /// Removes the provider configs of a composer that is gone, if it had any.
    pub fn collect_configs_of(&self, composer: ResourceId) {
        if self.shared.core.runs_control() && !self.shared.core.registry.configs_of(composer).is_empty() {
            self.shared.collect_configs_of(composer);
        }
    }

    /// Wakes everything that is not settled, once: this is what makes lost wakes of a crashed process harmless.
    pub fn recover(&self, tracker: &TaskTracker, stop: CancellationToken) {
        let shared = self.shared.clone();
        tracker.spawn(async move {
            // A process that died right after a composer's end left its configs.
            for owner in shared.core.registry.config_owners() {
                if matches!(shared.core.resource_now(owner).await, Ok(None)) {
                    shared.collect_configs_of(owner);
                }
            }
            let mut after = None;
            while !stop.is_cancelled() {
                match shared.core.store.unsettled(after, RECOVERY_PAGE).await {
                    Ok(rows) => {
                        let Some(last) = rows.last() else { return };
                        after = Some(*last);
                        shared.queue.push(rows.iter().map(|(_, id)| (*id, Touch::RECOVERY)));
                        // Owners too: a composite whose last child settled just before the crash is itself open,
                        // and so has a row; nothing more is needed.
                        shared.queue.drained_below(BATCH * 8).await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot read what is not settled");
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                }
            }
        });
    }
}

impl Shared {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn passes(&self) -> &Passes {
        &self.passes
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(crate) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Removes the provider configs of a composer that is gone; tried until it is done.
    fn collect_configs_of(self: &Arc<Self>, composer: ResourceId) {
        let shared = self.clone();
        self.tracker.spawn(async move {
            while let Err(error) = collect_configs_of_gone(&shared.core, composer).await {
                tracing::warn!(%composer, %error, "its provider configs stay for now");
                tokio::select! {
                    () = shared.stop.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_millis(500)) => {}
                }
            }
        });
    }

    /// Wakes `id` to go on with its deletion.
    pub(crate) fn wake_deleting(&self, id: ResourceId) {
        self.queue.push([(id, Touch::DELETION)]);
    }

    /// Wakes `id` to look at itself.
    pub(crate) fn wake(&self, id: ResourceId) {
        self.queue.push([(id, Touch::SELF)]);
    }

    async fn run(self: Arc<Self>) {
        let slots = Arc::new(Semaphore::new(BATCHES_IN_FLIGHT));
        loop {
            let Ok(slot) = slots.clone().acquire_owned().await else { return };
            let batch = tokio::select! {
                () = self.stop.cancelled() => return,
                batch = self.queue.take(BATCH) => batch,
            };
            let shared = self.clone();
            self.tracker.spawn(async move {
                let ids: Vec<_> = batch.iter().map(|(id, _)| *id).collect();
                if let Err(error) = shared.evaluate_batch(&batch).await {
                    tracing::warn!(%error, "an evaluation could not read the store; it is done again");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    shared.queue.push(batch);
                }
                shared.queue.done(&ids);
                drop(slot);
            });
        }
    }
}
