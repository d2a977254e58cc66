//! What a broker needs of the engine, as a trait, so that the broker can be tested without a database.

use async_trait::async_trait;
use bytes::Bytes;
use converge_domain::resource::{Condition, Reaction};
use converge_domain::{ClaimId, Epoch, Generation, KindRef, ResourceId, SessionId};
use converge_event_store::StoreError;
use std::collections::BTreeMap;
use tokio::sync::broadcast;

/// Why a task is cancelled whose claim is still live: its resource is going away. Whoever runs it stops and answers; for every other
/// reason the claim has ended, and no answer counts.
pub const DELETION: &str = "deletion";

/// Names a claim in everything said about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fence {
    pub id: ResourceId,
    pub epoch: Epoch,
    pub claim_id: ClaimId,
}

/// A claimed task with everything the worker gets.
#[derive(Clone, Debug)]
pub struct Task {
    pub fence: Fence,
    pub kind: KindRef,
    pub provider: String,
    pub name: String,
    pub reaction: Reaction,
    /// The kind has a reaction of its own for resyncs.
    pub observes: bool,
    /// The reaction's name in the manifest.
    pub reaction_name: String,
    pub finalizer: Option<String>,
    pub generation: Generation,
    /// From 1.
    pub attempt: u32,
    pub idempotency_key: String,
    /// None: no deadline.
    pub deadline_ms: Option<u64>,
    pub labels: BTreeMap<String, String>,
    pub spec: Bytes,
    pub status: Option<Bytes>,
    pub config_override: Option<ProviderConfigSnapshot>,
    /// The kind's default config that this task was decided under; sent in a `Config` frame before the
    /// task when the worker has not seen this version yet.
    pub default_config: Option<ProviderConfigSnapshot>,
    pub summary: Option<Bytes>,
    pub emits: Vec<String>,
    /// Paged inputs: `(part, first page after None, …)` are pulled with [`Dispatch::input_page`].
    pub paged_input: Option<InputPart>,
}

/// Which large input a task has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputPart {
    Observed,
    Descendants,
}

impl InputPart {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Descendants => "descendants",
        }
    }
}

/// A page of a task's input.
#[derive(Clone, Debug)]
pub struct InputPage {
    /// A JSON array of at most 1 MiB.
    pub items: Bytes,
    /// Pass it back for the next page; None: this was the last.
    pub next: Option<ResourceId>,
}

/// A provider config as workers get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderConfigSnapshot {
    pub name: String,
    pub spec: Bytes,
    pub data: Bytes,
    /// Sequence of the config's aggregate.
    pub version: u64,
}

/// Which kinds' work a claim may take.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    pub kind: KindRef,
    pub limit: usize,
    pub session: SessionId,
    /// Observed identity of the worker.
    pub worker: String,
}

/// A worker's answer.
#[derive(Clone, Debug)]
pub struct TaskOutcome {
    pub fence: Fence,
    pub kind: KindRef,
    pub result: TaskResult,
}

/// Success or failure, as the worker put it. JSON is still text here.
#[derive(Clone, Debug)]
pub enum TaskResult {
    Success {
        status: Option<Bytes>,
        conditions: Option<Vec<Condition>>,
        healthy: Option<bool>,
        changed: Option<bool>,
        differs: Vec<String>,
        in_progress: bool,
        requeue_after_secs: Option<u32>,
        /// Counts of staged parts that the worker says it sent (compose).
        children: u64,
        edges: u64,
        configs: u64,
    },
    Failure {
        message: String,
        terminal: bool,
        status: Option<Bytes>,
    },
}

/// What became of an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    Accepted,
    Fenced,
}

/// The engine could not do it now; the broker keeps the outcome and tries again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct DispatchError(pub String);

impl From<StoreError> for DispatchError {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

/// One staged frame of a composer's output, already split into items.
#[derive(Clone, Debug)]
pub struct StagedFrame {
    pub fence: Fence,
    pub first_ordinal: i64,
    pub part: converge_event_store::StagedPart,
    pub items: Vec<String>,
}

/// The engine as brokers see it.
#[async_trait]
pub trait Dispatch: Send + Sync + 'static {
    /// The session whose lease backs this process's claims.
    fn session(&self) -> SessionId;
    /// Every kind version with the provider name that serves it.
    fn served_kinds(&self) -> Vec<(KindRef, String)>;
    /// Fires with a kind version whenever its queue may have grown or its cap or manifest changed. A lagging
    /// receiver must treat every kind as woken.
    fn wakeups(&self) -> broadcast::Receiver<KindRef>;
    /// Fires when a claim ended other than by its outcome (expiry by another process), or, with [`DELETION`], when its task
    /// is to be stopped and answered.
    fn cancellations(&self) -> broadcast::Receiver<(Fence, String)>;
    /// Fires when a kind's default config changed.
    fn config_changes(&self) -> broadcast::Receiver<KindRef>;
    /// Claims up to `limit` due tasks of one kind version. Fewer than `limit` means: none left until the next wakeup.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Task>, DispatchError>;
    /// The next page of a task's input.
    async fn input_page(
        &self,
        fence: Fence,
        part: InputPart,
        after: Option<ResourceId>,
    ) -> Result<InputPage, DispatchError>;
    /// Stages a frame of composer output.
    async fn stage(&self, frame: StagedFrame) -> Result<(), DispatchError>;
    async fn record(&self, outcome: TaskOutcome) -> Result<Recorded, DispatchError>;
    /// Ends a claim without an outcome, so that the task is dispatched again at once.
    async fn release(&self, fence: Fence, reason: String) -> Result<(), DispatchError>;
    /// A worker resumed this task here: moves the claim to this session. False: the fence is dead.
    async fn resume(&self, fence: Fence) -> Result<bool, DispatchError>;
    /// The kind's default config, if it has one.
    fn default_config(&self, kind: &KindRef) -> Option<ProviderConfigSnapshot>;
    /// Tells the engine which kind versions have a ready worker here, so that `describe` can say what parks.
    fn report_served(&self, served: Vec<(KindRef, usize)>);
}
