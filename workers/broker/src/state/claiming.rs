//! Turning free slots into claims, and claimed tasks into orders.
//!
//! A slot is reserved before the engine is asked and given back if the engine had less, so at no instant can
//! more tasks be on their way to a worker than it has slots.

use super::ledger::{Deadline, Entry, Holder, Pages};
use super::{Order, State, WorkerId};
use converge_domain::KindRef;
use converge_engine::dispatch::{DispatchError, Task};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// One claim to make, with its slots already reserved.
#[derive(Clone, Debug)]
pub(crate) struct ClaimJob {
    pub(crate) kind: KindRef,
    pub(crate) worker: WorkerId,
    pub(crate) identity: String,
    pub(crate) limit: usize,
    /// The kind's wakeup count when the claim was planned.
    wakes: u64,
}

impl State {
    /// Every claim that is worth making now.
    pub(crate) fn plan_claims(&mut self) -> Vec<ClaimJob> {
        let hungry: Vec<KindRef> = self
            .demand
            .iter()
            .filter(|(_, demand)| demand.hungry && !demand.parked)
            .map(|(kind, _)| kind.clone())
            .collect();
        let mut planned = HashMap::<(WorkerId, usize), usize>::new();
        let count = |planned: &HashMap<_, usize>, key| planned.get(&key).copied().unwrap_or(0);
        while let Some((index, id)) = self.next_placement(&hungry, |id, index| count(&planned, (id, index))) {
            let Some(kind) = hungry.get(index) else { break };
            self.turn += 1;
            if let Some(demand) = self.demand.get_mut(kind) {
                demand.served_at = self.turn;
            }
            if let Some(worker) = self.workers.get_mut(&id) {
                worker.occupy(kind, 1);
            }
            *planned.entry((id, index)).or_default() += 1;
        }
        let jobs = planned.into_iter();
        jobs.filter_map(|((id, index), limit)| self.job(id, hungry.get(index)?.clone(), limit)).collect()
    }

    fn job(&mut self, worker: WorkerId, kind: KindRef, limit: usize) -> Option<ClaimJob> {
        let wakes = self.demand.get(&kind)?.wakes;
        let entry = self.workers.get_mut(&worker)?;
        entry.claiming.insert(kind.clone());
        Some(ClaimJob { identity: entry.identity.clone(), kind, worker, limit, wakes })
    }

    /// The engine answered a claim. Answers how long the kind must rest when it failed.
    pub(crate) fn claimed(
        &mut self,
        job: &ClaimJob,
        answer: Result<Vec<Task>, DispatchError>,
        now: Instant,
    ) -> Option<Duration> {
        let (tasks, failed) = match answer {
            Ok(tasks) => (tasks, false),
            Err(error) => {
                tracing::warn!(kind = %job.kind, %error, "a claim failed; the kind rests");
                (Vec::new(), true)
            }
        };
        let mut rest = None;
        if let Some(demand) = self.demand.get_mut(&job.kind) {
            if failed {
                demand.failures += 1;
                demand.parked = true;
                rest = Some(crate::backoff::pause(&self.config, demand.failures));
            } else {
                demand.failures = 0;
                // A short answer means an empty queue, unless the kind woke while the claim was in flight: then
                // the new work may have come after the engine looked.
                demand.hungry = tasks.len() >= job.limit || demand.wakes != job.wakes;
            }
        }
        if let Some(worker) = self.workers.get_mut(&job.worker) {
            worker.claiming.remove(&job.kind);
            worker.vacate(&job.kind, job.limit.saturating_sub(tasks.len()));
        }
        for task in tasks {
            self.push(job.worker, task, now);
        }
        self.claimable();
        rest
    }

    /// Sends a claimed task to the worker whose slot was reserved for it; a worker that has left gives it back.
    fn push(&mut self, id: WorkerId, task: Task, now: Instant) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return self.release(task.fence, "the worker left before the task was sent");
        };
        if worker.draining {
            worker.vacate(&task.kind, 1);
            return self.release(task.fence, "the worker is draining");
        }
        let pages = task.paged_input.map(|_| Pages::new(self.config.input_window));
        let deadline = task.deadline_ms.map(|ms| {
            let budget = Duration::from_millis(ms);
            Deadline { at: now + budget, budget }
        });
        self.ledger.insert(
            task.fence,
            Entry {
                kind: task.kind.clone(),
                holder: Holder::Worker(id),
                attested_at: now,
                deadline,
                pages: pages.clone(),
            },
        );
        metrics::counter!("converge_tasks_dispatched_total", "kind" => task.kind.kind.clone()).increment(1);
        worker.order(Order::Task { task: Box::new(task), claimed_at: now, pages });
        self.announce_end(deadline);
    }
}
