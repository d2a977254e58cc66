//! The tables, as collections ordered like the indexes they stand for.

use crate::digest::Hash;
use crate::rows::ChildMark;
use crate::store::{Head, Member, StagedItem, StoredEvent};
use converge_domain::resource::{Phase, Standing};
use converge_domain::{
    AggregateId, AggregateType, BatchId, ClaimId, CommandId, KindRef, PassId, ResourceId, ResourceRef,
    SessionId, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A head with the keys of its narrow rows.
#[derive(Clone)]
pub(super) struct HeadRecord {
    pub head: Head,
    pub aggregate_type: AggregateType,
    pub phase: Option<Phase>,
    pub standing: Option<Standing>,
    pub subtree: Option<Standing>,
    pub pass_id: Option<PassId>,
    pub outward: i64,
    pub queue: Option<(KindRef, i16, Timestamp)>,
    pub timer: Option<Timestamp>,
    pub child: Option<(ResourceId, ChildMark)>,
    pub claim: Option<(KindRef, SessionId)>,
}

#[derive(Clone)]
pub(super) struct BatchRecord {
    pub batch_id: BatchId,
    pub first: u64,
    pub count: u32,
    pub committed_at_us: i64,
    pub chain: Hash,
}

#[derive(Clone, Default)]
pub(super) struct Tables {
    /// The event at position `p` is at index `p - 1`.
    pub events: Vec<StoredEvent>,
    pub batches: Vec<BatchRecord>,
    pub fenced: HashSet<BatchId>,
    pub heads: BTreeMap<AggregateId, HeadRecord>,
    pub children: BTreeSet<(ResourceId, ResourceId)>,
    pub names: HashMap<ResourceRef, AggregateId>,
    /// (upstream, dependent)
    pub edges: BTreeSet<(ResourceId, ResourceId)>,
    /// (parent, id) → mark
    pub child: BTreeMap<(ResourceId, ResourceId), ChildMark>,
    pub queue: BTreeSet<(KindRef, i16, Timestamp, ResourceId)>,
    pub timers: BTreeSet<(Timestamp, ResourceId)>,
    pub claims: BTreeSet<(SessionId, ResourceId)>,
    /// Sessions that may hold claims.
    pub claimants: BTreeSet<SessionId>,
    pub claims_of_kind: HashMap<KindRef, u64>,
    pub policies: HashMap<KindRef, i32>,
    pub commands: HashSet<CommandId>,
    pub members: BTreeMap<SessionId, (Member, Timestamp)>,
    pub staged: BTreeMap<(ResourceId, ClaimId), BTreeMap<i64, StagedItem>>,
}

impl Tables {
    pub(super) fn has_child(&self, parent: ResourceId, marks: &[ChildMark]) -> bool {
        self.child_rows(parent).any(|(_, mark)| marks.contains(&mark))
    }

    pub(super) fn child_rows(
        &self,
        parent: ResourceId,
    ) -> impl Iterator<Item = (ResourceId, ChildMark)> + '_ {
        self.child
            .range((parent, ResourceId(uuid::Uuid::nil()))..)
            .take_while(move |((of, _), _)| *of == parent)
            .map(|((_, id), mark)| (*id, *mark))
    }
}
