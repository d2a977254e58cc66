//! The rows one append call writes beside events: the inline projections, as data.
//!
//! Everything here is a function of the log: [`crate::InlineProjector`] derives it from an aggregate's
//! state before and after its events.

use converge_domain::resource::{Phase, Standing};
use converge_domain::{AggregateId, AnyState, KindRef, ResourceId, ResourceRef, SessionId, Timestamp};

/// The head row of one aggregate after its events.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadRow {
    pub id: AggregateId,
    /// For a resource its kind; for other aggregates their type word (reserved as kind names).
    pub kind: String,
    pub kind_version: i16,
    pub name: String,
    /// The owner of a child; None for everything else.
    pub parent: Option<ResourceId>,
    /// None for aggregates that are not resources.
    pub phase: Option<Phase>,
    pub standing: Option<Standing>,
    pub subtree: Option<Standing>,
    /// The unfinished pass, for the `InPass` and `AncestorQuiet` guards.
    pub pass_id: Option<converge_domain::PassId>,
    /// `outward` of the state: what digests of a subtree are made of.
    pub outward: i64,
    pub state: AnyState,
}

/// Changes to the narrow tables, per aggregate. `None` = leave as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InlineRows {
    /// Insert `(kind, name) → id`: taken by a live aggregate. A taken name is a conflict.
    pub name_taken: Option<ResourceRef>,
    /// Delete the name.
    pub name_freed: Option<ResourceRef>,
    /// Edges (dependent = this aggregate) to add and remove, by upstream.
    pub edges_added: Vec<ResourceId>,
    pub edges_removed: Vec<ResourceId>,
    /// The child's row under its parent (nil uuid for top-level): `Some(None)` deletes it.
    pub child: Option<Option<ChildRow>>,
    /// The queue row: `Some(None)` deletes it.
    pub queue: Option<Option<QueueRow>>,
    /// The timer row: `Some(None)` deletes it.
    pub timer: Option<Option<TimerRow>>,
    /// The live claim, kept on the head and counted where the kind is capped: `Some(None)` ends it.
    pub claim: Option<Option<ClaimRow>>,
    /// The kind's policy row; upserted.
    pub policy: Option<PolicyRow>,
    /// The head goes away with the aggregate's last event (`Deleted`): the stream stays.
    pub head_removed: bool,
}

/// A child that its owner must look at: everything but AllReady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildRow {
    /// `ResourceId(Uuid::nil())` for top-level resources.
    pub parent: ResourceId,
    pub mark: ChildMark,
}

/// Why a child row exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChildMark {
    Open = 1,
    Impaired = 2,
    /// Dropped by its composer, not yet removed.
    Dropped = 3,
}

/// Work that is due and not held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRow {
    pub id: ResourceId,
    pub kind: KindRef,
    /// Lower first: 0 declared edits, 1 follow-ups, 2 retries, 3 resync.
    pub priority: i16,
    pub due_at: Timestamp,
}

/// Wake the aggregate at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerRow {
    pub id: ResourceId,
    pub due_at: Timestamp,
}

/// A claim in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRow {
    pub id: ResourceId,
    pub kind: KindRef,
    pub session: SessionId,
}

/// What SQL must know of a kind version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    pub kind: KindRef,
    /// 0 = no cap.
    pub max_inflight: i32,
}
