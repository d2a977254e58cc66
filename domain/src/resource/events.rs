//! The facts of a resource's life. Past tense, small, versioned; nothing derived.

use super::{
    Claim, Condition, Conflict, Edge, Gate, HeldPrune, Input, Pass, PendingPrune, Reaction, Shape, Standing,
    Unresolved,
};
use crate::ids::{ClaimId, Epoch, Generation, PassId, ResourceId, ResourceRef, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One fact. The payload in the log is this enum, externally tagged.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ResourceEvent {
    /// The resource came to be: revision 1, generation 1.
    Created(Created),
    /// The declaration changed; only what changed is given. Raises the revision.
    Configured(Configured),
    /// Upstreams were evaluated: the gate moved, values flowed in, or fields went missing.
    UpstreamsEvaluated(UpstreamsEvaluated),
    /// The resolved spec breaks the kind's schema; the generation has failed.
    InputsRejected { generation: Generation, message: String, at: Timestamp },
    /// A task was claimed for a worker.
    Claimed(Claim),
    /// Work succeeded for the generation it was claimed for.
    Worked(Worked),
    /// The work is under way outside; ask again at `requeue_at`. No attempt spent.
    Progressed { epoch: Epoch, status: Option<Arc<Value>>, requeue_at: Timestamp, at: Timestamp },
    /// A reaction failed.
    AttemptFailed(AttemptFailed),
    /// The claim ended without an outcome: its lease expired, or the worker gave it back.
    ClaimReleased { epoch: Epoch, claim_id: ClaimId, reason: String, at: Timestamp },
    /// A worker resumed the task at another broker: its claim lives under that broker's session now.
    ClaimMoved { epoch: Epoch, claim_id: ClaimId, session: SessionId },
    /// An outcome came under a dead fence; nothing was changed by it.
    OutcomeFenced { epoch: Epoch, claim_id: ClaimId, reason: String },
    /// A composer's output was validated as a whole; the claim ends, a pass begins.
    CompositionAccepted(CompositionAccepted),
    /// The pass is applied.
    Composed(Composed),
    /// The pass cannot be finished (its staged output is gone); it must be composed again.
    CompositionAbandoned { pass_id: PassId, reason: String, at: Timestamp },
    /// The state of the subtree below changed.
    SubtreeChanged(SubtreeChanged),
    /// The rollup's result for the settled subtree `digest`.
    RolledUp {
        epoch: Epoch,
        digest: String,
        status: Option<Arc<Value>>,
        conditions: Option<Vec<Condition>>,
        at: Timestamp,
    },
    /// Every dependent has seen the current status.
    Propagated {},
    /// A child of it was lost or its labels changed: compose once more.
    RecomposeRequested {
        reason: String,
        /// The children that it is about, where their statuses are the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// Its composer no longer wants it; `former_dependents` still do until they have followed.
    /// `kept`: its kind grants a grace window, so it is set aside instead of removed, until `kept_until`.
    Dropped {
        pass_id: PassId,
        former_dependents: Vec<ResourceId>,
        kept: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept_until: Option<Timestamp>,
        at: Timestamp,
    },
    /// The grace window of a dropped child is over: it goes like any other.
    GraceEnded { at: Timestamp },
    /// Its composer wants it again.
    Readopted { pass_id: PassId, at: Timestamp },
    /// Somebody asked for its end. Final.
    DeletionRequested { at: Timestamp },
    /// Nothing depends on it and it owns nothing any more: its finalizers may run.
    TeardownOpened {},
    /// One finalizer's work is done.
    FinalizerStripped { epoch: Epoch, finalizer: String, at: Timestamp },
    /// The end of the stream.
    Deleted(Deleted),
    /// An operator set it aside.
    Quarantined {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        at: Timestamp,
    },
    /// The end of a quarantine.
    Released {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        at: Timestamp,
    },
    /// Somebody asked to look at the world again.
    ResyncRequested(ResyncRequested),
    /// What was seen.
    Observed(Observed),
    /// Which dropped children stay for the sake of whom; empty: none any more.
    PrunePendingChanged { pending: Vec<PendingPrune>, at: Timestamp },
    /// A held prune may happen.
    PruneConfirmed {
        digest: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        at: Timestamp,
    },
    /// Upstreams that were names only are resources now.
    UpstreamsBound { bound: Vec<(ResourceRef, ResourceId)>, at: Timestamp },
    /// It bears its name: the one before it is gone.
    NameTaken { at: Timestamp },
    /// An operator gave its teardown up; what these finalizers stand for may still exist.
    Abandoned { reason: String, finalizers: Vec<String>, at: Timestamp },
}

/// See [`ResourceEvent::Composed`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Composed {
    pub pass_id: PassId,
    pub created: u64,
    pub changed: u64,
    pub dropped: u64,
    /// Children that others hold; the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// Removals that wait for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldPrune>,
    /// One child that this pass made or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<ResourceRef>,
    /// Provider configs that the output listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<String>,
    pub at: Timestamp,
}

/// See [`ResourceEvent::ResyncRequested`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResyncRequested {
    /// Counts the resyncs of a resource.
    pub number: u64,
    /// It had failed: the same generation is worked (and composed) again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
    /// Its composer runs again on the same input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recompose: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub at: Timestamp,
}

/// See [`ResourceEvent::Observed`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Observed {
    pub epoch: Epoch,
    pub number: u64,
    /// Absent: as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub healthy: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    pub at: Timestamp,
}

/// See [`ResourceEvent::Created`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Created {
    pub id: ResourceId,
    pub kind: String,
    pub kind_version: u16,
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<ResourceId>,
    pub spec: Arc<Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletion_protection: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    pub shape: Arc<Shape>,
    /// The pass that made it, if a composer did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_id: Option<PassId>,
    /// The one that still bears its name and is going away: it waits for the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<ResourceId>,
    pub at: Timestamp,
}

/// See [`ResourceEvent::Configured`]. Absent means unchanged.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Configured {
    pub generation: Generation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind_version: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Arc<Shape>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// `Some(None)` removes the reference.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "double_option")]
    pub provider_config_ref: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<Edge>>,
    /// Upstreams it no longer has an edge to: they may wait for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<ResourceId>,
    /// The pass that changed it, if a composer did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_id: Option<PassId>,
    pub at: Timestamp,
}

/// See [`ResourceEvent::Deleted`]. The head goes away with this event, so it names whoever must be told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Deleted {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ResourceId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<ResourceId>,
    /// The name that is free now; absent in what earlier versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ResourceRef>,
    /// Its composer had not dropped it, and will want it anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wanted: bool,
    pub at: Timestamp,
}

/// See [`ResourceEvent::UpstreamsEvaluated`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct UpstreamsEvaluated {
    pub gate: Gate,
    /// Raised when a flowed value changed.
    pub generation: Generation,
    /// The inputs that changed, replacing those with the same field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Fields whose flow is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<Unresolved>,
    /// The sequences of upstreams that hold the gate, as read: the decision is void once one moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<(ResourceId, u64)>,
    pub at: Timestamp,
}

/// See [`ResourceEvent::Worked`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Worked {
    pub epoch: Epoch,
    pub generation: Generation,
    pub round: crate::ids::Round,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub healthy: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    pub at: Timestamp,
}

/// See [`ResourceEvent::AttemptFailed`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AttemptFailed {
    pub epoch: Epoch,
    pub reaction: Reaction,
    pub generation: Generation,
    pub message: String,
    /// No further attempt will be made for this generation.
    pub terminal: bool,
    /// Which attempt this was, from 1.
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Arc<Value>>,
    pub at: Timestamp,
}

/// See [`ResourceEvent::CompositionAccepted`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CompositionAccepted {
    pub epoch: Epoch,
    pub pass: Pass,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    pub at: Timestamp,
}

/// See [`ResourceEvent::SubtreeChanged`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SubtreeChanged {
    pub subtree: Standing,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub culprit: Option<ResourceId>,
    /// Present when settled: what a rollup would see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub at: Timestamp,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

mod double_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &Option<Option<String>>, s: S) -> Result<S::Ok, S::Error> {
        value.as_ref().and_then(Option::as_ref).serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Option<String>>, D::Error> {
        Option::<String>::deserialize(d).map(Some)
    }
}

impl cqrs_es::DomainEvent for ResourceEvent {
    fn event_type(&self) -> String {
        self.name().to_owned()
    }

    fn event_version(&self) -> String {
        "1".to_owned()
    }
}

impl ResourceEvent {
    /// When it happened, on the database's clock; None for facts that move no phase.
    pub const fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Created(Created { at, .. })
            | Self::Configured(Configured { at, .. })
            | Self::UpstreamsEvaluated(UpstreamsEvaluated { at, .. })
            | Self::InputsRejected { at, .. }
            | Self::Claimed(Claim { claimed_at: at, .. })
            | Self::Worked(Worked { at, .. })
            | Self::Progressed { at, .. }
            | Self::AttemptFailed(AttemptFailed { at, .. })
            | Self::ClaimReleased { at, .. }
            | Self::CompositionAccepted(CompositionAccepted { at, .. })
            | Self::Composed(Composed { at, .. })
            | Self::CompositionAbandoned { at, .. }
            | Self::SubtreeChanged(SubtreeChanged { at, .. })
            | Self::RolledUp { at, .. }
            | Self::Dropped { at, .. }
            | Self::Readopted { at, .. }
            | Self::DeletionRequested { at }
            | Self::FinalizerStripped { at, .. }
            | Self::Deleted(Deleted { at, .. })
            | Self::GraceEnded { at }
            | Self::Quarantined { at, .. }
            | Self::Released { at, .. }
            | Self::ResyncRequested(ResyncRequested { at, .. })
            | Self::Observed(Observed { at, .. })
            | Self::PrunePendingChanged { at, .. }
            | Self::PruneConfirmed { at, .. }
            | Self::UpstreamsBound { at, .. }
            | Self::NameTaken { at }
            | Self::Abandoned { at, .. } => Some(*at),
            Self::ClaimMoved { .. }
            | Self::OutcomeFenced { .. }
            | Self::Propagated {}
            | Self::RecomposeRequested { .. }
            | Self::TeardownOpened {} => None,
        }
    }

    /// The event's type word in the log.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Created(_) => "Created",
            Self::Configured(_) => "Configured",
            Self::UpstreamsEvaluated(_) => "UpstreamsEvaluated",
            Self::InputsRejected { .. } => "InputsRejected",
            Self::Claimed(_) => "Claimed",
            Self::Worked(_) => "Worked",
            Self::Progressed { .. } => "Progressed",
            Self::AttemptFailed(_) => "AttemptFailed",
            Self::ClaimReleased { .. } => "ClaimReleased",
            Self::ClaimMoved { .. } => "ClaimMoved",
            Self::OutcomeFenced { .. } => "OutcomeFenced",
            Self::CompositionAccepted(_) => "CompositionAccepted",
            Self::Composed(_) => "Composed",
            Self::CompositionAbandoned { .. } => "CompositionAbandoned",
            Self::SubtreeChanged(_) => "SubtreeChanged",
            Self::RolledUp { .. } => "RolledUp",
            Self::Propagated {} => "Propagated",
            Self::RecomposeRequested { .. } => "RecomposeRequested",
            Self::Dropped { .. } => "Dropped",
            Self::Readopted { .. } => "Readopted",
            Self::DeletionRequested { .. } => "DeletionRequested",
            Self::TeardownOpened {} => "TeardownOpened",
            Self::FinalizerStripped { .. } => "FinalizerStripped",
            Self::Deleted(_) => "Deleted",
            Self::GraceEnded { .. } => "GraceEnded",
            Self::Quarantined { .. } => "Quarantined",
            Self::Released { .. } => "Released",
            Self::ResyncRequested(_) => "ResyncRequested",
            Self::Observed(_) => "Observed",
            Self::PrunePendingChanged { .. } => "PrunePendingChanged",
            Self::PruneConfirmed { .. } => "PruneConfirmed",
            Self::UpstreamsBound { .. } => "UpstreamsBound",
            Self::NameTaken { .. } => "NameTaken",
            Self::Abandoned { .. } => "Abandoned",
        }
    }
}
