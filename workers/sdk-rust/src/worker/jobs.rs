//! Every task from its arrival until the broker has its outcome.
//!
//! This is what makes a lost connection harmless: a job stays here while its handler runs and while its outcome is
//! undelivered, is named in the next `Subscribe`, and leaves only on `Received`, on `Cancel`, or given back.

use crate::error::TaskError;
use crate::input::Page;
use crate::outcome::Outcome;
use converge_protocol::v1;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// An outcome, ready to be sent as often as it takes.
pub(crate) struct Finished {
    pub(crate) fence: v1::Fence,
    pub(crate) kind: String,
    pub(crate) kind_version: u32,
    pub(crate) result: Result<Outcome, TaskError>,
}

/// Where a job stands.
enum Stage {
    /// Its handler runs. `pages` feeds it while its input is arriving.
    Running { cancelled: CancellationToken, pages: Option<mpsc::Sender<Page>> },
    /// Its outcome waits to be taken.
    Done(Arc<Finished>),
}

struct Job {
    fence: v1::Fence,
    kind: String,
    kind_version: u32,
    deadline: Option<Instant>,
    stage: Stage,
}

/// Something to say to the broker.
pub(crate) enum Parcel {
    Outcome(Arc<Finished>),
    InputTaken { fence: v1::Fence, index: u32 },
    Drain { released: Vec<v1::Fence> },
}

/// How much there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Count {
    pub(crate) running: usize,
    pub(crate) all: usize,
}

#[derive(Default)]
struct Inner {
    jobs: HashMap<String, Job>,
    outbox: VecDeque<Parcel>,
    /// Parcels taken from the outbox and not yet on the stream.
    saying: usize,
    draining: bool,
    given_back: Vec<v1::Fence>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Jobs {
    inner: Mutex<Inner>,
    parcels: Notify,
    count: watch::Sender<Count>,
}

impl Jobs {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every change below is one assignment or one map operation; a panic between them leaves nothing half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let (value, count, parcels) = {
            let mut inner = self.inner();
            let value = change(&mut inner);
            let running =
                inner.jobs.values().filter(|job| matches!(job.stage, Stage::Running { .. })).count();
            (value, Count { running, all: inner.jobs.len() }, !inner.outbox.is_empty())
        };
        self.count.send_replace(count);
        if parcels {
            self.parcels.notify_one();
        }
        value
    }

    pub(crate) fn count(&self) -> Count {
        *self.count.borrow()
    }

    /// Follows the counts.
    pub(crate) fn counts(&self) -> watch::Receiver<Count> {
        self.count.subscribe()
    }

    /// A task came. False: it is here already, under the same claim.
    pub(crate) fn start(
        &self,
        task: &v1::Task,
        fence: v1::Fence,
        cancelled: CancellationToken,
        pages: Option<mpsc::Sender<Page>>,
    ) -> bool {
        let deadline = (task.deadline_ms > 0)
            .then(|| Instant::now() + std::time::Duration::from_millis(task.deadline_ms));
        let (kind, kind_version) = (task.kind.clone(), task.kind_version);
        self.change(|inner| {
            if inner.jobs.contains_key(&fence.claim_id) {
                return false;
            }
            let stage = Stage::Running { cancelled, pages };
            let id = fence.claim_id.clone();
            inner.jobs.insert(id, Job { fence, kind, kind_version, deadline, stage });
            true
        })
    }

    /// A page of a running task's input came.
    pub(crate) fn page(&self, claim_id: &str, page: Page) {
        let mut inner = self.inner();
        let Some(Job { stage: Stage::Running { pages, .. }, .. }) = inner.jobs.get_mut(claim_id) else {
            return;
        };
        let last = page.last;
        // The broker keeps to a window that fits; one that does not loses the task its input, and the task says so.
        let kept = pages.as_ref().is_some_and(|pages| pages.try_send(page).is_ok());
        if last || !kept {
            *pages = None;
        }
    }

    /// A handler ended. A job whose claim had ended meanwhile is gone, and so is its outcome: nobody waits for it.
    pub(crate) fn finish(&self, claim_id: &str, result: Result<Outcome, TaskError>) {
        self.change(|inner| {
            let Some(job) = inner.jobs.get_mut(claim_id) else { return };
            let (fence, kind) = (job.fence.clone(), job.kind.clone());
            let finished = Arc::new(Finished { fence, kind, kind_version: job.kind_version, result });
            job.stage = Stage::Done(Arc::clone(&finished));
            inner.outbox.push_back(Parcel::Outcome(finished));
        });
    }

    /// The broker ended a claim, or (`answered`) its resource is going away and it waits for the answer. An outcome that is
    /// already computed is still delivered: the store decides, and records that it came too late.
    pub(crate) fn cancel(&self, claim_id: &str, answered: bool) {
        self.change(|inner| {
            if let Some(Job { stage: Stage::Running { cancelled, .. }, .. }) = inner.jobs.get(claim_id) {
                cancelled.cancel();
                if !answered {
                    inner.jobs.remove(claim_id);
                }
            }
        });
    }

    /// The store has this outcome.
    pub(crate) fn received(&self, claim_id: &str) {
        self.change(|inner| inner.jobs.remove(claim_id));
    }

    /// The next thing to say.
    pub(crate) async fn next_parcel(&self) -> Parcel {
        loop {
            let notified = self.parcels.notified();
            if let Some(parcel) = self.pop() {
                return parcel;
            }
            notified.await;
        }
    }

    fn pop(&self) -> Option<Parcel> {
        let mut inner = self.inner();
        let parcel = inner.outbox.pop_front();
        inner.saying += usize::from(parcel.is_some());
        parcel
    }

    /// A parcel of [`Self::next_parcel`] is on the stream.
    pub(crate) fn said(&self) {
        let mut inner = self.inner();
        inner.saying = inner.saying.saturating_sub(1);
    }

    /// The stream broke: input that was arriving will not go on, and the tasks that need more of it learn so.
    pub(crate) fn stream_lost(&self) {
        for job in self.inner().jobs.values_mut() {
            if let Stage::Running { pages, .. } = &mut job.stage {
                *pages = None;
            }
        }
    }

    /// A new stream stands: whatever may have been lost with the old one is said again.
    pub(crate) fn say_again(&self) {
        self.change(|inner| {
            inner.outbox.clear();
            inner.saying = 0;
            if inner.draining {
                inner.outbox.push_back(Parcel::Drain { released: inner.given_back.clone() });
            }
            let done = inner.jobs.values().filter_map(|job| match &job.stage {
                Stage::Done(finished) => Some(Parcel::Outcome(Arc::clone(finished))),
                Stage::Running { .. } => None,
            });
            inner.outbox.extend(done);
        });
    }

    /// What the next `Subscribe` must name: running handlers and undelivered outcomes alike, so that neither's claim is
    /// given to another.
    pub(crate) fn running(&self) -> Vec<v1::Running> {
        let running = |job: &Job| v1::Running {
            fence: Some(job.fence.clone()),
            kind: job.kind.clone(),
            kind_version: job.kind_version,
            deadline_ms: job.deadline.map_or(0, |deadline| {
                let left = deadline.saturating_duration_since(Instant::now()).as_millis();
                u64::try_from(left).unwrap_or(u64::MAX).max(1)
            }),
        };
        self.inner().jobs.values().map(running).collect()
    }

    /// What the next heartbeat attests.
    pub(crate) fn progressing(&self) -> Vec<v1::Fence> {
        self.inner().jobs.values().map(|job| job.fence.clone()).collect()
    }

    /// No new work, please.
    pub(crate) fn start_draining(&self) {
        self.change(|inner| {
            inner.draining = true;
            inner.outbox.push_back(Parcel::Drain { released: Vec::new() });
        });
    }

    /// Stops what still runs and gives it back.
    pub(crate) fn give_back(&self) {
        self.change(|inner| {
            let mut released = Vec::new();
            inner.jobs.retain(|_, job| match &job.stage {
                Stage::Running { cancelled, .. } => {
                    cancelled.cancel();
                    released.push(job.fence.clone());
                    false
                }
                Stage::Done(_) => true,
            });
            inner.given_back.extend(released.iter().cloned());
            if !released.is_empty() {
                inner.outbox.push_back(Parcel::Drain { released });
            }
        });
    }

    /// Nothing is left to say or to wait for.
    pub(crate) fn is_empty(&self) -> bool {
        let inner = self.inner();
        inner.jobs.is_empty() && inner.outbox.is_empty() && inner.saying == 0
    }

    fn taken(&self, fence: v1::Fence, index: u32) {
        self.change(|inner| inner.outbox.push_back(Parcel::InputTaken { fence, index }));
    }
}

/// Lets an input tell the broker that a page was consumed.
#[derive(Default)]
pub(crate) struct PageTaken(Option<(Arc<super::Core>, v1::Fence)>);

impl PageTaken {
    pub(crate) fn new(core: Arc<super::Core>, fence: v1::Fence) -> Self {
        Self(Some((core, fence)))
    }

    pub(crate) fn tell(&self, index: u32) {
        if let Some((core, fence)) = &self.0 {
            core.jobs.taken(fence.clone(), index);
        }
    }
}

impl std::fmt::Debug for PageTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PageTaken")
    }
}
