//! The engine's side of dispatch: claims, task contents, outcomes.

mod claim;
mod eligible;
mod inputs;
mod record;
mod task;

use crate::dispatch::{
    ClaimRequest, DELETION, Dispatch, DispatchError, Fence, InputPage, InputPart, ProviderConfigSnapshot,
    Recorded, StagedFrame, Task, TaskOutcome,
};
use crate::engine::Core;
use crate::evaluate::Evaluator;
use async_trait::async_trait;
use converge_domain::resource::{Reaction, ResourceCommand, ResourceError};
use converge_domain::{DomainError, KindRef, ResourceId, SessionId};
use converge_event_store::{ExecuteError, StagedItem};
use lru::LruCache;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// Signals kept for a slow receiver; one that lags treats everything as changed.
const SIGNALS: usize = 4096;
/// Resources whose kind is remembered between wake-ups.
const KINDS_REMEMBERED: NonZeroUsize = NonZeroUsize::new(200_000).expect("not zero");

/// Implements [`Dispatch`].
pub(crate) struct Dispatcher {
    core: Arc<Core>,
    evaluator: Evaluator,
    wakeups: broadcast::Sender<KindRef>,
    cancellations: broadcast::Sender<(Fence, String)>,
    config_changes: broadcast::Sender<KindRef>,
    kinds: Mutex<LruCache<ResourceId, KindRef>>,
    /// Resources that a claim of this process is under way for.
    claiming: Mutex<HashSet<ResourceId>>,
}

impl Dispatcher {
    pub fn new(core: Arc<Core>, evaluator: Evaluator) -> Self {
        Self {
            core,
            evaluator,
            wakeups: broadcast::channel(SIGNALS).0,
            cancellations: broadcast::channel(SIGNALS).0,
            config_changes: broadcast::channel(SIGNALS).0,
            kinds: Mutex::new(LruCache::new(KINDS_REMEMBERED)),
            claiming: Mutex::default(),
        }
    }

    /// Resources whose work may have become claimable, or whose kind has a free place again.
    pub async fn may_claim(&self, ids: &[ResourceId]) {
        if ids.is_empty() {
            return;
        }
        let mut kinds = HashSet::new();
        let mut unknown = Vec::new();
        {
            let mut known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
            for id in ids {
                match known.get(id) {
                    Some(kind) => {
                        kinds.insert(kind.clone());
                    }
                    None => unknown.push(*id),
                }
            }
        }
        if !unknown.is_empty() {
            match self.core.resources(&unknown).await {
                Ok(found) => {
                    if unknown.iter().any(|id| !found.contains_key(id)) {
                        // Some are gone, and with them their kinds: a place under a cap may have become free.
                        self.may_claim_all();
                    }
                    let mut known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
                    for (id, state) in found {
                        kinds.extend([state.kind_ref(), state.task_kind_ref()]);
                        known.put(id, state.task_kind_ref());
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot see whose work became due; every kind looks");
                    return self.may_claim_all();
                }
            }
        }
        for kind in kinds {
            // Nobody listens where no broker runs.
            let _ = self.wakeups.send(kind);
        }
    }

    /// Every kind's work may have become claimable.
    pub fn may_claim_all(&self) {
        for entry in self.core.registry.kinds() {
            let _ = self.wakeups.send(entry.manifest.kind_ref());
        }
    }

    /// A claim of the kind lost a race: whoever won may leave the work due, and then no event says so.
    fn claim_again_soon(&self, kind: KindRef) {
        let wakeups = self.wakeups.clone();
        tokio::spawn(async move {
            tokio::time::sleep(claim::AFTER_A_LOST_RACE).await;
            let _ = wakeups.send(kind);
        });
    }

    /// The version that tasks of `id` run under may have changed.
    pub fn forget_kind(&self, id: ResourceId) {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).pop(&id);
    }

    /// A claim ended other than by its outcome.
    pub fn claim_ended(&self, fence: Fence, reason: &str) {
        let _ = self.cancellations.send((fence, reason.to_owned()));
    }

    /// Tells the worker that runs a task of `id` that its resource is going away. The claim stays live: the teardown waits for the
    /// worker's answer, or for the end of its lease. Read after the deletion, the claim may be that of the teardown itself by now,
    /// which nobody wants to stop.
    pub fn cancel_running(&self, id: ResourceId) {
        let core = self.core.clone();
        let cancellations = self.cancellations.clone();
        tokio::spawn(async move {
            let Ok(Some(state)) = core.resource(id).await else { return };
            if let Some(claim) = state.claim.as_ref().filter(|claim| claim.reaction != Reaction::Teardown) {
                let fence = Fence { id, epoch: claim.epoch, claim_id: claim.claim_id };
                let _ = cancellations.send((fence, DELETION.to_owned()));
            }
        });
    }

    /// Provider configs changed.
    pub fn configs_changed(&self) {
        for entry in self.core.registry.kinds() {
            let _ = self.config_changes.send(entry.manifest.kind_ref());
        }
    }
}

#[async_trait]
impl Dispatch for Dispatcher {
    fn session(&self) -> SessionId {
        self.core.session
    }

    fn served_kinds(&self) -> Vec<(KindRef, String)> {
        let kinds = self.core.registry.kinds();
        kinds
            .into_iter()
            .map(|entry| (entry.manifest.kind_ref(), entry.manifest.provider().to_owned()))
            .collect()
    }

    fn wakeups(&self) -> broadcast::Receiver<KindRef> {
        self.wakeups.subscribe()
    }

    fn cancellations(&self) -> broadcast::Receiver<(Fence, String)> {
        self.cancellations.subscribe()
    }

    fn config_changes(&self) -> broadcast::Receiver<KindRef> {
        self.config_changes.subscribe()
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Task>, DispatchError> {
        self.claim_due(request).await
    }

    async fn input_page(
        &self,
        fence: Fence,
        part: InputPart,
        after: Option<ResourceId>,
    ) -> Result<InputPage, DispatchError> {
        self.page(fence, part, after).await
    }

    async fn stage(&self, frame: StagedFrame) -> Result<(), DispatchError> {
        let items: Vec<_> = frame
            .items
            .into_iter()
            .zip(frame.first_ordinal..)
            .map(|(payload, ordinal)| StagedItem { ordinal, part: frame.part, payload })
            .collect();
        self.core.store.stage(frame.fence.id, frame.fence.claim_id, &items).await?;
        Ok(())
    }

    async fn record(&self, outcome: TaskOutcome) -> Result<Recorded, DispatchError> {
        self.record_outcome(outcome).await
    }

    async fn release(&self, fence: Fence, reason: String) -> Result<(), DispatchError> {
        match self.core.release_claim(fence, &reason).await {
            Ok(_) | Err(ExecuteError::Domain { .. }) => {
                self.unstage(fence).await;
                Ok(())
            }
            Err(error) => Err(DispatchError(error.to_string())),
        }
    }

    async fn resume(&self, fence: Fence) -> Result<bool, DispatchError> {
        let command = ResourceCommand::MoveClaim {
            epoch: fence.epoch,
            claim_id: fence.claim_id,
            session: self.core.session,
        };
        match self.core.execute(fence.id, command).await {
            Ok(_) => Ok(true),
            Err(ExecuteError::Domain {
                error: DomainError::Resource(ResourceError::NotDue | ResourceError::NotFound),
                ..
            }) => Ok(false),
            Err(error) => Err(DispatchError(error.to_string())),
        }
    }

    fn default_config(&self, kind: &KindRef) -> Option<ProviderConfigSnapshot> {
        self.core.registry.default_config(kind).map(|entry| entry.snapshot)
    }

    fn report_served(&self, served: Vec<(KindRef, usize)>) {
        self.core.served.set(served);
    }
}
