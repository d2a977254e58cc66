//! A store as one process sees it: at an append chosen beforehand the process dies, and from then on nothing it
//! asks is ever answered. A dead process cannot be told from one that was stopped, and neither may do harm.

use async_trait::async_trait;
use converge_domain::{
    AggregateId, AggregateType, BatchId, ClaimId, KindRef, Position, ResourceId, ResourceRef, Sequence,
    SessionId, Timestamp,
};
use converge_event_store::{
    Appended, Batch, ChildrenSummary, Head, Held, LogHead, Member, QueueCursor, QueueRow, StagedItem, Store,
    StoreError, StoredEvent, TimerRow,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Where in an append the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing of it is written.
    Before,
    /// It is committed, and nobody in the process learns of it.
    After,
}

/// How long a process lives.
pub struct Life {
    dead: AtomicBool,
    died: Notify,
    /// Appends until the end; 0: no end is set.
    left: AtomicU64,
    after: AtomicBool,
    /// How often a call lets others go first.
    pauses: Mutex<StdRng>,
}

impl Life {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            dead: AtomicBool::new(false),
            died: Notify::new(),
            left: AtomicU64::new(0),
            after: AtomicBool::new(true),
            pauses: Mutex::new(StdRng::seed_from_u64(seed)),
        })
    }

    /// The process dies at the `appends`-th append from now; 0 takes that back.
    pub fn end_at(&self, appends: u64, moment: Moment) {
        self.after.store(moment == Moment::After, Ordering::SeqCst);
        self.left.store(appends, Ordering::SeqCst);
    }

    pub fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.died.notify_waiters();
    }

    pub fn is_over(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Returns when the process is dead.
    pub async fn over(&self) {
        loop {
            let died = self.died.notified();
            if self.is_over() {
                return;
            }
            died.await;
        }
    }

    /// The dead never get past this.
    async fn go_on(&self) {
        let pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner).random_range(0..3);
        for _ in 0..pauses {
            tokio::task::yield_now().await;
        }
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    /// Counts an append: the moment to die at, if this is the one.
    fn count(&self) -> Option<Moment> {
        let counted = |left: u64| left.checked_sub(1);
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, counted);
        let moment = if self.after.load(Ordering::SeqCst) { Moment::After } else { Moment::Before };
        (left == Ok(1)).then_some(moment)
    }
}

/// See the module.
pub struct MortalStore {
    pub inner: Arc<dyn Store>,
    pub life: Arc<Life>,
}

/// Asks the store behind, and keeps the answer from a process that died meanwhile.
macro_rules! ask {
    ($self:ident.$call:ident($($argument:expr),*)) => {{
        $self.life.go_on().await;
        let answer = $self.inner.$call($($argument),*).await;
        $self.life.go_on().await;
        answer
    }};
}

type Stored<T> = Result<T, StoreError>;

#[async_trait]
impl Store for MortalStore {
    async fn append(&self, batch: &Batch) -> Stored<Appended> {
        self.life.go_on().await;
        let end = self.life.count();
        if end == Some(Moment::Before) {
            self.life.kill();
            self.life.go_on().await;
        }
        let answer = self.inner.append(batch).await;
        if end == Some(Moment::After) {
            self.life.kill();
        }
        self.life.go_on().await;
        answer
    }

    async fn find_batch(&self, batch_id: BatchId) -> Stored<Option<Appended>> {
        ask!(self.find_batch(batch_id))
    }

    async fn log_head(&self) -> Stored<LogHead> {
        ask!(self.log_head())
    }

    async fn chain_at(&self, position: Position) -> Stored<Option<Vec<u8>>> {
        ask!(self.chain_at(position))
    }

    async fn read(&self, after: Position, limit: u32) -> Stored<Vec<StoredEvent>> {
        ask!(self.read(after, limit))
    }

    async fn read_stream(&self, id: AggregateId, after: Sequence, limit: u32) -> Stored<Vec<StoredEvent>> {
        ask!(self.read_stream(id, after, limit))
    }

    async fn read_beginnings(
        &self,
        streams: &[(AggregateId, Sequence)],
        before: Position,
        each: u32,
    ) -> Stored<Vec<StoredEvent>> {
        ask!(self.read_beginnings(streams, before, each))
    }

    async fn appended(&self) -> Stored<()> {
        ask!(self.appended())
    }

    async fn now(&self) -> Stored<Timestamp> {
        ask!(self.now())
    }

    async fn heads(&self, ids: &[AggregateId]) -> Stored<Vec<Head>> {
        ask!(self.heads(ids))
    }

    async fn heads_of_type(&self, aggregate_type: AggregateType) -> Stored<Vec<Head>> {
        ask!(self.heads_of_type(aggregate_type))
    }

    async fn names(&self, names: &[ResourceRef]) -> Stored<Vec<(ResourceRef, AggregateId)>> {
        ask!(self.names(names))
    }

    async fn names_of_kind(&self, kind: &str, after: &str, limit: u32) -> Stored<Vec<(String, ResourceId)>> {
        ask!(self.names_of_kind(kind, after, limit))
    }

    async fn held(&self, ids: &[ResourceId]) -> Stored<Vec<Held>> {
        ask!(self.held(ids))
    }

    async fn dependents(
        &self,
        upstream: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Stored<Vec<ResourceId>> {
        ask!(self.dependents(upstream, after, limit))
    }

    async fn dependents_many(
        &self,
        upstreams: &[ResourceId],
        limit: u32,
    ) -> Stored<Vec<(ResourceId, ResourceId)>> {
        ask!(self.dependents_many(upstreams, limit))
    }

    async fn children(
        &self,
        parent: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Stored<Vec<ResourceId>> {
        ask!(self.children(parent, after, limit))
    }

    async fn children_summary(&self, parent: ResourceId) -> Stored<ChildrenSummary> {
        ask!(self.children_summary(parent))
    }

    async fn children_digest(&self, parent: ResourceId) -> Stored<(u64, String)> {
        ask!(self.children_digest(parent))
    }

    async fn unsettled(
        &self,
        after: Option<(ResourceId, ResourceId)>,
        limit: u32,
    ) -> Stored<Vec<(ResourceId, ResourceId)>> {
        ask!(self.unsettled(after, limit))
    }

    async fn queue(&self, kind: &KindRef, cursor: Option<QueueCursor>, limit: u32) -> Stored<Vec<QueueRow>> {
        ask!(self.queue(kind, cursor, limit))
    }

    async fn due_timers(&self, after: Timestamp, limit: u32) -> Stored<Vec<TimerRow>> {
        ask!(self.due_timers(after, limit))
    }

    async fn next_timer_in_ms(&self, after: Timestamp) -> Stored<Option<i64>> {
        ask!(self.next_timer_in_ms(after))
    }

    async fn live_claims(&self, kind: &KindRef) -> Stored<u64> {
        ask!(self.live_claims(kind))
    }

    async fn claims_of(&self, session: SessionId, limit: u32) -> Stored<Vec<ResourceId>> {
        ask!(self.claims_of(session, limit))
    }

    async fn beat(&self, member: &Member) -> Stored<Timestamp> {
        ask!(self.beat(member))
    }

    async fn members(&self) -> Stored<Vec<(Member, i64)>> {
        ask!(self.members())
    }

    async fn remove_member(&self, session: SessionId) -> Stored<()> {
        ask!(self.remove_member(session))
    }

    async fn dead_sessions(&self, dead_ms: i64) -> Stored<Vec<SessionId>> {
        ask!(self.dead_sessions(dead_ms))
    }

    async fn stage(&self, root: ResourceId, claim_id: ClaimId, items: &[StagedItem]) -> Stored<()> {
        ask!(self.stage(root, claim_id, items))
    }

    async fn staged(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        after: i64,
        limit: u32,
    ) -> Stored<Vec<StagedItem>> {
        ask!(self.staged(root, claim_id, after, limit))
    }

    async fn staged_at(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        ordinals: &[i64],
    ) -> Stored<Vec<StagedItem>> {
        ask!(self.staged_at(root, claim_id, ordinals))
    }

    async fn unstage(&self, root: ResourceId, claim_id: ClaimId) -> Stored<()> {
        ask!(self.unstage(root, claim_id))
    }
}
