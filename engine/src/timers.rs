//! Time as the database tells it: retries that fall due and passes left unfinished.
//!
//! Instants seen on the log wait in a heap; the `timer` table covers what was set before this process started,
//! or did not fit. Firing twice is harmless, so the two need not agree.

use crate::dispatching::Dispatcher;
use crate::engine::Core;
use crate::evaluate::{Evaluator, Touch};
use converge_domain::{ResourceId, Timestamp};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Most instants held in memory; beyond that the table's slow look finds them.
const HEAP_MAX: usize = 200_000;
/// How often the table is looked at for timers this process did not see being set.
const TABLE_LOOK: Duration = Duration::from_secs(30);
/// Looks at the table come no closer than this: the timers of this process stand in it too.
const LOOKS_APART: Duration = Duration::from_secs(1);
const PAGE: u32 = 1000;
/// How long after an instant it is looked at once more.
const SECOND_LOOK_MS: i64 = 100;

/// The soonest on top.
type Heap = BinaryHeap<Reverse<(Timestamp, ResourceId)>>;

/// Where timers are set.
#[derive(Clone)]
pub(crate) struct Timers {
    heap: Arc<Mutex<Heap>>,
    sooner: Arc<Notify>,
}

impl Timers {
    /// Wakes `id` at `due`.
    pub fn at(&self, due: Timestamp, id: ResourceId) {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        if heap.len() < HEAP_MAX {
            let sooner = heap.peek().is_none_or(|Reverse((first, _))| due < *first);
            // Twice: should this process's idea of the database's time be a little ahead, the first finds nothing due.
            heap.push(Reverse((due, id)));
            heap.push(Reverse((due.plus_ms(SECOND_LOOK_MS), id)));
            if sooner {
                self.sooner.notify_one();
            }
        }
    }

    fn take_due(&self, now: Timestamp) -> Vec<ResourceId> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        while heap.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            if let Some(Reverse((_, id))) = heap.pop() {
                due.push(id);
            }
        }
        due
    }

    fn next(&self) -> Option<Timestamp> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner).peek().map(|Reverse((at, _))| *at)
    }
}

/// Runs the one timer loop of this process.
pub(crate) fn start(
    core: Arc<Core>,
    evaluator: Evaluator,
    dispatcher: Arc<Dispatcher>,
    tracker: &TaskTracker,
    stop: CancellationToken,
) -> Timers {
    let timers = Timers { heap: Arc::default(), sooner: Arc::default() };
    let handle = timers.clone();
    tracker.spawn(async move {
        let mut looked = Timestamp(0);
        let mut next_look = tokio::time::Instant::now();
        loop {
            let mut due = timers.take_due(core.now());
            if tokio::time::Instant::now() >= next_look {
                next_look = tokio::time::Instant::now() + TABLE_LOOK;
                match look(&core, looked).await {
                    Ok((from_table, until, next)) => {
                        due.extend(from_table);
                        looked = until;
                        // What an earlier process has set falls due between two looks as well.
                        if let Some(next) = next {
                            next_look = tokio::time::Instant::now() + next.clamp(LOOKS_APART, TABLE_LOOK);
                        }
                    }
                    Err(error) => tracing::warn!(%error, "cannot read due timers"),
                }
            }
            if !due.is_empty() {
                dispatcher.may_claim(&due).await;
                if core.runs_control() {
                    evaluator.touch(due.into_iter().map(|id| (id, Touch::SELF)));
                }
            }
            let now = core.now();
            let sleep = timers
                .next()
                .map(|at| Duration::from_millis(u64::try_from(at.0 - now.0).unwrap_or(0)))
                .unwrap_or(TABLE_LOOK)
                .min(next_look.saturating_duration_since(tokio::time::Instant::now()));
            tokio::select! {
                () = stop.cancelled() => return,
                () = timers.sooner.notified() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    });
    handle
}

/// Timers of the table that fell due since `after`, the instant up to which all were read, and how long it is to the next.
async fn look(
    core: &Core,
    after: Timestamp,
) -> Result<(Vec<ResourceId>, Timestamp, Option<Duration>), converge_event_store::StoreError> {
    let (ids, after) = due_since(core, after).await?;
    let next = core.store.next_timer_in_ms(after).await?;
    Ok((ids, after, next.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)))))
}

async fn due_since(
    core: &Core,
    after: Timestamp,
) -> Result<(Vec<ResourceId>, Timestamp), converge_event_store::StoreError> {
    let mut ids = Vec::new();
    let mut after = after;
    loop {
        let page = core.store.due_timers(after, PAGE).await?;
        let full = page.len() >= PAGE as usize;
        ids.extend(page.iter().map(|row| row.id));
        let Some(last) = page.last() else { return Ok((ids, after)) };
        // Rows that share the last instant may continue on the next page: step back one millisecond unless the
        // whole page shares it, and accept that some fire twice.
        let whole_page_shares = page.first().is_some_and(|first| first.due_at == last.due_at);
        after = if full && !whole_page_shares { last.due_at.plus_ms(-1) } else { last.due_at };
        if !full {
            return Ok((ids, after));
        }
    }
}
