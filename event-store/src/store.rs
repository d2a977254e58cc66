//! The store behind a trait: PostgreSQL in the product, memory in tests and the simulator. One
//! conformance suite runs against both.

use crate::rows::{HeadRow, InlineRows, QueueRow};
use async_trait::async_trait;
use converge_domain::guard::Guard;
use converge_domain::resource::ResourceState;
use converge_domain::{
    AggregateId, AggregateType, AnyEvent, AnyState, BatchId, ClaimId, CommandId, KindRef, Position,
    ResourceId, ResourceRef, Sequence, SessionId, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Who did it and why, flat string to string. Keys: `actor`, `command_id`, `correlation_id`,
/// `causation_id`, `request_id`; absent ones are unknown.
pub type Metadata = BTreeMap<String, String>;

/// An event to append.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Index of its unit in the batch.
    pub unit: u32,
    pub aggregate_type: AggregateType,
    pub aggregate_id: AggregateId,
    pub sequence: Sequence,
    pub event: AnyEvent,
    pub metadata: Arc<Metadata>,
}

/// Everything one aggregate's change writes beside its events.
#[derive(Clone, Debug)]
pub struct HeadChange {
    pub unit: u32,
    pub aggregate_type: AggregateType,
    /// Sequence the decision started from; 0 inserts.
    pub expected: Sequence,
    pub sequence: Sequence,
    pub head: HeadRow,
    pub rows: InlineRows,
}

/// One append call. A *unit* is the smallest set of commands that must stand or fall together: commands
/// that share an aggregate in this batch, or an atomic group.
#[derive(Clone, Debug)]
pub struct Batch {
    pub batch_id: BatchId,
    /// In the order positions are given.
    pub events: Vec<NewEvent>,
    pub heads: Vec<HeadChange>,
    pub guards: Vec<(u32, Guard)>,
    /// Command ids to remember, by unit.
    pub commands: Vec<(u32, CommandId)>,
}

impl Batch {
    /// One more than the highest unit index.
    pub fn units(&self) -> u32 {
        let events = self.events.iter().map(|event| event.unit);
        let heads = self.heads.iter().map(|head| head.unit);
        let guards = self.guards.iter().map(|(unit, _)| *unit);
        let commands = self.commands.iter().map(|(unit, _)| *unit);
        events.chain(heads).chain(guards).chain(commands).max().map_or(0, |unit| unit + 1)
    }

    /// Units that take a name or a command id which an earlier unit of the same batch takes too. They are
    /// reported as [`ConflictKind::Guard`]: whether they conflict at all depends on the earlier unit's fate.
    pub fn self_conflicts(&self) -> BTreeSet<u32> {
        let mut lost = BTreeSet::new();
        let mut names: HashMap<&ResourceRef, u32> = HashMap::new();
        let mut commands: HashMap<CommandId, u32> = HashMap::new();
        let mut takes: Vec<(u32, &ResourceRef)> = self
            .heads
            .iter()
            .filter_map(|change| change.rows.name_taken.as_ref().map(|name| (change.unit, name)))
            .collect();
        takes.sort_by_key(|(unit, _)| *unit);
        for (unit, name) in takes {
            if *names.entry(name).or_insert(unit) != unit {
                lost.insert(unit);
            }
        }
        let mut ids = self.commands.clone();
        ids.sort_by_key(|(unit, _)| *unit);
        for (unit, id) in ids {
            if *commands.entry(id).or_insert(unit) != unit {
                lost.insert(unit);
            }
        }
        lost
    }
}

/// Serialises metadata, once for consecutive events that share it.
pub(crate) fn metadata_json() -> impl FnMut(&Arc<Metadata>) -> Result<String, StoreError> {
    let mut last: Option<(Arc<Metadata>, String)> = None;
    move |metadata| {
        if let Some((known, text)) = &last
            && Arc::ptr_eq(known, metadata)
        {
            return Ok(text.clone());
        }
        let text =
            serde_json::to_string(metadata.as_ref()).map_err(|error| StoreError::Data(error.to_string()))?;
        last = Some((metadata.clone(), text.clone()));
        Ok(text)
    }
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Position of the first event; meaningless when `count` is 0.
    pub first: Position,
    pub count: u64,
    pub committed_at: Timestamp,
    /// Units that were not written, and why.
    pub conflicts: Vec<UnitConflict>,
}

/// A unit that was left out of the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitConflict {
    pub unit: u32,
    pub kind: ConflictKind,
}

/// Why a unit was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// A head moved since the decision.
    Head,
    /// A guard no longer holds.
    Guard,
    /// A name is taken by another live aggregate.
    Name,
    /// The command id was executed before.
    Duplicate,
}

/// A failed call: *known failed* or *outcome unknown*, never in between.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The data itself is refused (SQLSTATE 22, 23): the batch is bisected around the poisonous unit.
    #[error("the database refuses the data: {0}")]
    Data(String),
    /// Deadlock, serialization, lock timeout: nothing was written, try the same again.
    #[error("try again: {0}")]
    Retry(String),
    /// The database is away or out of resources: nothing was written, back off.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// The connection was lost during commit: look the batch id up.
    #[error("the connection was lost during commit of batch {0}")]
    OutcomeUnknown(BatchId),
    /// A stored row that this build cannot read.
    #[error("a stored row cannot be read: {0}")]
    Corrupt(String),
}

/// An event as read back.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    pub position: Position,
    pub aggregate_type: AggregateType,
    pub aggregate_id: AggregateId,
    pub sequence: Sequence,
    pub event: AnyEvent,
    pub metadata: Arc<Metadata>,
    pub committed_at: Timestamp,
    pub before: Before,
}

/// The resource right before an event, where the process that appended it still knew: on the first event of a resource in
/// a batch, for whoever follows the log in memory and would fold the stream again. It is no part of the log: an event that is
/// read from the store carries none, and equals one that does.
#[derive(Clone, Debug, Default)]
pub struct Before(pub Option<Arc<ResourceState>>);

impl PartialEq for Before {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A head as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub id: AggregateId,
    pub sequence: Sequence,
    pub state: AnyState,
}

/// The end of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHead {
    /// 0 for an empty log.
    pub position: Position,
    /// The chain hash of the last batch (32 bytes; zeros for an empty log).
    pub chain: Vec<u8>,
    pub committed_at: Option<Timestamp>,
}

/// The children of a composite, as its evaluation needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildrenSummary {
    pub open: Option<ResourceId>,
    pub impaired: Option<ResourceId>,
    pub dropped: Vec<ResourceId>,
}

/// What keeps a resource from being torn down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub id: ResourceId,
    pub by_dependents: bool,
    pub by_children: bool,
}

/// A keyset cursor into the queue of one kind version.
pub type QueueCursor = (i16, Timestamp, ResourceId);

/// The log and the inline tables.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Writes a batch in one server call, or nothing.
    async fn append(&self, batch: &Batch) -> Result<Appended, StoreError>;
    /// After [`StoreError::OutcomeUnknown`]: looks the batch up while holding the log lock, so that a
    /// commit still under way cannot be missed. None: it never committed.
    async fn find_batch(&self, batch_id: BatchId) -> Result<Option<Appended>, StoreError>;
    async fn log_head(&self) -> Result<LogHead, StoreError>;
    /// The chain hash of the batch that ends at `position`; None if no batch ends there.
    async fn chain_at(&self, position: Position) -> Result<Option<Vec<u8>>, StoreError>;
    /// Events with `position > after`, in order.
    async fn read(&self, after: Position, limit: u32) -> Result<Vec<StoredEvent>, StoreError>;
    /// One aggregate's stream from sequence `after` exclusive, in order.
    async fn read_stream(
        &self,
        id: AggregateId,
        after: Sequence,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError>;
    /// The beginnings of many streams at once: of each up to the given sequence and of that at most `each` events, below
    /// position `before`, one stream after the other and each in order. For whoever folds states as of a position.
    async fn read_beginnings(
        &self,
        streams: &[(AggregateId, Sequence)],
        before: Position,
        each: u32,
    ) -> Result<Vec<StoredEvent>, StoreError>;
    /// Returns when somebody, here or elsewhere, may have appended since the last return. It may return for nothing and
    /// may miss an append: it shortens the wait of a reader that polls anyway. Errors mean that nothing is heard now.
    async fn appended(&self) -> Result<(), StoreError>;
    /// The database's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Heads that exist, in no particular order.
    async fn heads(&self, ids: &[AggregateId]) -> Result<Vec<Head>, StoreError>;
    /// All heads of one aggregate type other than resources (kinds, configs, bindings).
    async fn heads_of_type(&self, aggregate_type: AggregateType) -> Result<Vec<Head>, StoreError>;
    /// Holders of names, those that exist.
    async fn names(&self, names: &[ResourceRef]) -> Result<Vec<(ResourceRef, AggregateId)>, StoreError>;
    /// Resources with an edge to `upstream`, by id after `after`.
    /// Live resources of a kind by name after `after`, whatever their versions.
    async fn names_of_kind(
        &self,
        kind: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(String, ResourceId)>, StoreError>;
    async fn dependents(
        &self,
        upstream: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, StoreError>;
    /// `(upstream, dependent)` pairs of several upstreams in one read, up to `limit` in all.
    async fn dependents_many(
        &self,
        upstreams: &[ResourceId],
        limit: u32,
    ) -> Result<Vec<(ResourceId, ResourceId)>, StoreError> {
        let mut pairs = Vec::new();
        for upstream in upstreams {
            let dependents = self.dependents(*upstream, None, limit).await?;
            pairs.extend(dependents.into_iter().map(|dependent| (*upstream, dependent)));
        }
        Ok(pairs)
    }
    /// Children of `parent` (heads), by id after `after`.
    async fn children(
        &self,
        parent: ResourceId,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, StoreError>;
    /// The unsettled children of `parent`: one open and one impaired witness, up to 1000 dropped ones.
    /// Of each of `ids`, whether a live resource depends on it and whether it owns one.
    async fn held(&self, ids: &[ResourceId]) -> Result<Vec<Held>, StoreError>;
    async fn children_summary(&self, parent: ResourceId) -> Result<ChildrenSummary, StoreError>;
    /// Order-free digest over (id, outward) of every counted child (standing not LeftOut), hex, with their count.
    async fn children_digest(&self, parent: ResourceId) -> Result<(u64, String), StoreError>;
    /// All child rows, by (parent, id) after `after`: what a process evaluates once when it starts.
    async fn unsettled(
        &self,
        after: Option<(ResourceId, ResourceId)>,
        limit: u32,
    ) -> Result<Vec<(ResourceId, ResourceId)>, StoreError>;

    /// Due queue rows (`due_at <= now`) of one kind version in order after `cursor`.
    async fn queue(
        &self,
        kind: &KindRef,
        cursor: Option<QueueCursor>,
        limit: u32,
    ) -> Result<Vec<QueueRow>, StoreError>;
    /// Timers with `after < due_at <= now`, in order.
    async fn due_timers(
        &self,
        after: Timestamp,
        limit: u32,
    ) -> Result<Vec<crate::rows::TimerRow>, StoreError>;
    /// Milliseconds until the next timer after `after`, on the database's clock; None: there is none.
    async fn next_timer_in_ms(&self, after: Timestamp) -> Result<Option<i64>, StoreError>;
    /// How many claims of a kind version are live; 0 if its policy does not cap it, as nobody counts them then.
    async fn live_claims(&self, kind: &KindRef) -> Result<u64, StoreError>;
    /// Live claims made under a session, by id. May walk over every head, so it is for sessions that are dead. One that
    /// holds none is then no claimant any more.
    async fn claims_of(&self, session: SessionId, limit: u32) -> Result<Vec<ResourceId>, StoreError>;

    /// Upserts the member row with the database's time; returns that time.
    async fn beat(&self, member: &Member) -> Result<Timestamp, StoreError>;
    /// All members with the age of their last beat in milliseconds.
    async fn members(&self) -> Result<Vec<(Member, i64)>, StoreError>;
    async fn remove_member(&self, session: SessionId) -> Result<(), StoreError>;
    /// Sessions that have no live member row (dead for `dead_ms`, or gone) and may still hold claims: every one that does,
    /// and those that were not found out by [`Self::claims_of`] since their last one ended.
    async fn dead_sessions(&self, dead_ms: i64) -> Result<Vec<SessionId>, StoreError>;

    /// Staged composer output: frames of items, keyed by claim. Unlogged: lost by a database crash, then
    /// obtained again by composing again.
    async fn stage(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        items: &[StagedItem],
    ) -> Result<(), StoreError>;
    /// Items by ordinal after `after` (-1: from the start).
    async fn staged(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StagedItem>, StoreError>;
    /// The items at these distinct ordinals that are there, by ordinal.
    async fn staged_at(
        &self,
        root: ResourceId,
        claim_id: ClaimId,
        ordinals: &[i64],
    ) -> Result<Vec<StagedItem>, StoreError>;
    async fn unstage(&self, root: ResourceId, claim_id: ClaimId) -> Result<(), StoreError>;
}

/// One child or edge of a composer's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedItem {
    pub ordinal: i64,
    pub part: StagedPart,
    /// JSON text.
    pub payload: String,
}

/// Which list of the output an item belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StagedPart {
    Child = 1,
    Edge = 2,
    Config = 3,
}

/// A process in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub session: SessionId,
    /// `control`, `broker` or `all`.
    pub role: String,
    pub host: String,
    /// Where workers reach it; empty for control.
    pub broker_address: String,
    /// The kind versions (`vpc/v1`) that a ready worker connected to it serves.
    pub served: Vec<String>,
}
