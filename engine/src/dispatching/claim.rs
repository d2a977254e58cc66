//! Claiming: candidates from the queue, filtered by what is known now, decided by domain code under guards.

use super::Dispatcher;
use crate::dispatch::{ClaimRequest, DispatchError, Fence, Task};
use crate::evaluate::Touch;
use crate::registry::KindEntry;
use converge_domain::guard::Guard;
use converge_domain::resource::{ClaimTask, ResourceCommand, ResourceState};
use converge_domain::{ClaimId, ResourceId};
use converge_event_store::ExecuteError;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Queue rows read per page.
const PAGE_MAX: usize = 1000;

impl Dispatcher {
    pub(super) async fn claim_due(&self, request: ClaimRequest) -> Result<Vec<Task>, DispatchError> {
        let Some(entry) = self.core.registry.kind(&request.kind) else { return Ok(vec![]) };
        let limit = self.places_left(&entry, &request).await?;
        let mut tasks = Vec::new();
        let mut cursor = None;
        while tasks.len() < limit {
            let page = (2 * (limit - tasks.len())).clamp(16, PAGE_MAX);
            let rows =
                self.core.store.queue(&request.kind, cursor, u32::try_from(page).unwrap_or(u32::MAX)).await;
            let rows = match rows {
                Ok(rows) => rows,
                // What is claimed already must reach its worker.
                Err(_) if !tasks.is_empty() => break,
                Err(error) => return Err(error.into()),
            };
            let Some(last) = rows.last() else { break };
            cursor = Some((last.priority, last.due_at, last.id));
            let exhausted = rows.len() < page;

            let candidates = Claiming::begin(self, rows.iter().map(|row| row.id));
            let eligible = match self.eligible(&candidates.ids).await {
                Ok(eligible) => eligible,
                Err(_) if !tasks.is_empty() => break,
                Err(error) => return Err(error),
            };
            if !eligible.held.is_empty() {
                // Queued behind an upstream that left Ready after the gate opened: looking again closes the gate, so
                // that the upstream's return opens it, which is an event that wakes the kind.
                self.evaluator.touch(eligible.held.iter().map(|id| (*id, Touch::SELF)));
                self.claim_again_soon(request.kind.clone());
            }
            let mut eligible = eligible.claimable;
            eligible.truncate(limit - tasks.len());
            let claims = eligible.iter().map(|id| self.claim_one(*id, &entry, &request));
            for task in futures::future::join_all(claims).await {
                tasks.extend(task);
            }
            drop(candidates);
            if exhausted {
                break;
            }
        }
        Ok(tasks)
    }

    /// How many of the request can be claimed under the kind's cap. Only an estimate that saves doomed claims: the
    /// guard counts under a lock. At the cap it is 0, and the end of any claim wakes the kind.
    async fn places_left(&self, entry: &KindEntry, request: &ClaimRequest) -> Result<usize, DispatchError> {
        let Some(cap) = cap(entry) else { return Ok(request.limit) };
        let live = self.core.store.live_claims(&request.kind).await?;
        Ok(cap.saturating_sub(usize::try_from(live).unwrap_or(usize::MAX)).min(request.limit))
    }

    async fn claim_one(&self, id: ResourceId, entry: &KindEntry, request: &ClaimRequest) -> Option<Task> {
        let claim_id = ClaimId(Uuid::new_v4());
        let claim = ClaimTask {
            claim_id,
            session: request.session,
            worker: request.worker.clone(),
            deadline_secs: entry.manifest.knobs.task_deadline_secs.unwrap_or(0),
            at: self.core.now(),
        };
        let mut group = self.core.group(id, ResourceCommand::Claim(Box::new(claim)));
        // A claim that loses a race is not repeated: whoever won it says so, and what held it back wakes the kind.
        group.attempts_max = Some(1);
        if cap(entry).is_some() {
            group.guards.push(Guard::UnderCap { kind: request.kind.clone() });
        }
        match self.core.log.execute(group).await {
            Ok(committed) => {
                let state: Arc<ResourceState> = committed.steps.first()?.state.as_resource()?.clone();
                self.task(&state, entry)
            }
            // Somebody else took it, or it is not due any more: its queue row is gone by now.
            Err(ExecuteError::Domain { .. }) => None,
            Err(error) => {
                tracing::debug!(%id, %error, "a claim did not go through");
                if matches!(error, ExecuteError::Store(_)) {
                    self.disown(id, claim_id);
                }
                // An upstream, an ancestor or the cap moved. Looking again sets the gate right; and where it finds
                // that nothing is wrong after all, only another claim brings the work on.
                self.evaluator.touch([(id, Touch::SELF)]);
                self.claim_again_soon(request.kind.clone());
                None
            }
        }
    }
}

/// How soon a kind whose claim lost a race is looked at again.
pub(super) const AFTER_A_LOST_RACE: Duration = Duration::from_millis(20);

/// The kind's `max_inflight`, if it has one.
fn cap(entry: &KindEntry) -> Option<usize> {
    entry.manifest.knobs.max_inflight.filter(|cap| *cap > 0).map(|cap| cap as usize)
}

impl Dispatcher {
    /// Gives a claim back whose commit was not heard of: it may be live, and nobody would work on it.
    fn disown(&self, id: ResourceId, claim_id: ClaimId) {
        let core = self.core.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(AFTER_AN_UNHEARD_COMMIT).await;
                let Ok(state) = core.resource_now(id).await else { continue };
                let claim = state.and_then(|state| state.claim.clone());
                let Some(claim) = claim.filter(|claim| claim.claim_id == claim_id) else { return };
                let fence = Fence { id, epoch: claim.epoch, claim_id };
                let released = core.release_claim(fence, "its claim was not heard of").await;
                if !matches!(released, Err(ExecuteError::Store(_))) {
                    return;
                }
            }
        });
    }
}

/// How long after a claim whose commit is unknown the head is asked.
const AFTER_AN_UNHEARD_COMMIT: Duration = Duration::from_secs(1);

/// Candidates that no other claim of this process is under way for; given back on drop.
struct Claiming<'a> {
    dispatcher: &'a Dispatcher,
    ids: Vec<ResourceId>,
}

impl<'a> Claiming<'a> {
    fn begin(dispatcher: &'a Dispatcher, ids: impl Iterator<Item = ResourceId>) -> Self {
        let mut claiming = dispatcher.claiming.lock().unwrap_or_else(PoisonError::into_inner);
        let ids = ids.filter(|id| claiming.insert(*id)).collect();
        Self { dispatcher, ids }
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        let mut claiming = self.dispatcher.claiming.lock().unwrap_or_else(PoisonError::into_inner);
        for id in &self.ids {
            claiming.remove(id);
        }
    }
}
