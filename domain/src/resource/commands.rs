//! What may be asked of a resource. One handler file per command under `decide/`.

use super::{Condition, Conflict, Edge, HeldPrune, PendingPrune, Shape, Standing};
use crate::ids::{ClaimId, Epoch, PassId, ResourceId, ResourceRef, Revision, Sequence, SessionId, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A command to one resource.
#[derive(Clone, Debug)]
pub enum ResourceCommand {
    Declare(Box<Declare>),
    /// The same, of a resource that was found to be there. Should it end before this is decided, then it is refused: an
    /// ended stream looks empty from its head, and must not begin a second time.
    Redeclare(Box<Declare>),
    Evaluate(Box<Evaluate>),
    Claim(Box<ClaimTask>),
    RecordOutcome(Box<RecordOutcome>),
    ReleaseClaim {
        epoch: Epoch,
        claim_id: ClaimId,
        reason: String,
        at: Timestamp,
    },
    /// A worker resumed the task at the broker of `session`.
    MoveClaim {
        epoch: Epoch,
        claim_id: ClaimId,
        session: SessionId,
    },
    CompletePass(Box<CompletePass>),
    AbandonPass {
        pass_id: PassId,
        reason: String,
        at: Timestamp,
    },
    /// Drop a child in a pass of its composer.
    Drop {
        composer: ResourceId,
        pass_id: PassId,
        former_dependents: Vec<ResourceId>,
        /// The end of its kind's grace window; None: it grants none.
        kept_until: Option<Timestamp>,
        at: Timestamp,
    },
    /// Every dependent was evaluated against the status as of `outward`.
    ConfirmPropagated {
        outward: u64,
    },
    /// Demotion: the subtree became at least this unsettled. Issued by the executor only.
    RaiseSubtree {
        standing: Standing,
        culprit: Option<ResourceId>,
        at: Timestamp,
    },
    RequestRecompose {
        reason: String,
    },
    /// Ends the grace window of a dropped child, if it is over.
    EndGrace {
        at: Timestamp,
    },
    /// Sets it aside.
    Quarantine {
        reason: String,
        at: Timestamp,
    },
    /// Ends a quarantine.
    Release {
        reason: String,
        at: Timestamp,
    },
    /// Asks to look at the world again; `recomposes`: its kind composes on a resync too.
    Resync {
        recomposes: bool,
        reason: String,
        at: Timestamp,
    },
    /// Notes which dropped children stay for the sake of whom.
    NotePrunePending {
        pending: Vec<PendingPrune>,
        at: Timestamp,
    },
    /// Lets a held prune happen.
    ConfirmPrune {
        digest: String,
        reason: String,
        at: Timestamp,
    },
    /// Edges to names become edges to those who bear them now.
    BindUpstreams {
        bound: Vec<(ResourceRef, ResourceId)>,
        at: Timestamp,
    },
    /// Takes its name, which is free now.
    TakeName {
        at: Timestamp,
    },
    /// Gives a teardown up.
    Abandon {
        reason: String,
        at: Timestamp,
    },
    /// Asks for the end of a child that its composer dropped, if it is still dropped.
    RemoveDropped {
        at: Timestamp,
    },
    /// Asks for the end of the resource. `by_name`: of it itself, not of a tree that it belongs to; one that is set
    /// aside goes by name only.
    RequestDeletion {
        by_name: bool,
        at: Timestamp,
    },
}

/// Declares a resource: creates it or changes it. Already validated against its kind's schema.
#[derive(Clone, Debug)]
pub struct Declare {
    pub id: ResourceId,
    pub reference: ResourceRef,
    pub kind_version: u16,
    pub spec: Arc<Value>,
    pub labels: BTreeMap<String, String>,
    pub provider_config_ref: Option<String>,
    /// None: keep.
    pub deletion_protection: Option<bool>,
    pub edges: Vec<Edge>,
    pub shape: Arc<Shape>,
    /// The one that still bears the name and is going away.
    pub behind: Option<ResourceId>,
    /// None: a user; Some: the composer whose pass this is, and its ancestors.
    pub composer: Option<ComposerRef>,
    pub expected_revision: Option<Revision>,
    pub at: Timestamp,
}

/// The composer on whose behalf a child is declared.
#[derive(Clone, Debug)]
pub struct ComposerRef {
    /// The composer, then its own ancestors.
    pub ancestors: Vec<ResourceId>,
    pub pass_id: PassId,
}

/// Facts read around a resource, for the level-triggered evaluation. Decided from `expected` only.
#[derive(Clone, Debug)]
pub struct Evaluate {
    /// The resource's own sequence when the facts were read; a moved resource is evaluated again.
    pub expected: Sequence,
    /// One per edge, in the state's order. Absent upstreams have `sequence` 0.
    pub upstreams: Vec<UpstreamFact>,
    /// For composites.
    pub children: Option<ChildrenFact>,
    /// What the kind's schema says against the spec with its flowed values in; judged only when every value is
    /// there. None: nothing.
    pub rejection: Option<String>,
    /// While deleting: whether dependents or children are left.
    pub held_by: Option<HeldBy>,
    pub at: Timestamp,
}

/// The end of a pass.
#[derive(Clone, Debug)]
pub struct CompletePass {
    pub pass_id: PassId,
    pub created: u64,
    pub changed: u64,
    pub dropped: u64,
    pub conflicts: Vec<Conflict>,
    pub held: Option<HeldPrune>,
    /// One child that was made or changed.
    pub sample: Option<ResourceRef>,
    pub configs: Vec<String>,
    pub at: Timestamp,
}

/// An upstream as read.
#[derive(Clone, Debug)]
pub struct UpstreamFact {
    pub id: ResourceId,
    pub sequence: Sequence,
    pub ready: bool,
    /// Standing in its owner's eyes; LeftOut or missing blocks.
    pub standing: Standing,
    pub status: Arc<Value>,
}

/// A composite's children as read.
#[derive(Clone, Debug)]
pub struct ChildrenFact {
    pub open: Option<ResourceId>,
    pub impaired: Option<ResourceId>,
    /// Over membership, phase and status of every counted child; None while one is open.
    pub digest: Option<String>,
    /// The kind composes again when they change.
    pub recompose: bool,
}

/// What keeps a Deleting resource.
#[derive(Clone, Debug)]
pub struct HeldBy {
    pub dependents: bool,
    pub children: bool,
}

/// Claims whatever is due.
#[derive(Clone, Debug)]
pub struct ClaimTask {
    pub claim_id: ClaimId,
    pub session: SessionId,
    pub worker: String,
    pub deadline_secs: u32,
    pub at: Timestamp,
}

/// A worker's answer, under its fence.
#[derive(Clone, Debug)]
pub struct RecordOutcome {
    pub epoch: Epoch,
    pub claim_id: ClaimId,
    pub outcome: Outcome,
    pub retry: RetryPolicy,
    pub at: Timestamp,
}

/// What the worker said.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Work, rollup or teardown succeeded (a teardown's success strips its finalizer).
    Succeeded(Succeeded),
    /// A composition passed whole-output validation and is staged.
    Composition {
        pass_id: PassId,
        digest: String,
        children: u64,
        edges: u64,
        succeeded: Succeeded,
    },
    /// Under way elsewhere; ask again.
    InProgress {
        status: Option<Arc<Value>>,
        requeue_after_secs: u32,
    },
    Failed {
        message: String,
        terminal: bool,
        status: Option<Arc<Value>>,
    },
}

/// The parts of a success; absent parts keep their slot.
#[derive(Clone, Debug, Default)]
pub struct Succeeded {
    pub status: Option<Arc<Value>>,
    pub conditions: Option<Vec<Condition>>,
    /// None: healthy unless a condition `Ready=False` says otherwise.
    pub healthy: Option<bool>,
    pub changed: Option<bool>,
}

/// How failures of the kind are retried.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// 0: never escalate.
    pub max_transient_attempts: u32,
    /// Full jitter: a fraction in [0, 1) drawn by the caller.
    pub jitter: f64,
}

impl ResourceCommand {
    /// The command's word in metadata and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Declare(_) | Self::Redeclare(_) => "declare",
            Self::Evaluate(_) => "evaluate",
            Self::Claim(_) => "claim",
            Self::RecordOutcome(_) => "record_outcome",
            Self::ReleaseClaim { .. } => "release_claim",
            Self::MoveClaim { .. } => "move_claim",
            Self::CompletePass(_) => "complete_pass",
            Self::AbandonPass { .. } => "abandon_pass",
            Self::Drop { .. } => "drop",
            Self::ConfirmPropagated { .. } => "confirm_propagated",
            Self::RaiseSubtree { .. } => "raise_subtree",
            Self::RequestRecompose { .. } => "request_recompose",
            Self::RemoveDropped { .. } => "remove_dropped",
            Self::RequestDeletion { .. } => "request_deletion",
            Self::EndGrace { .. } => "end_grace",
            Self::Quarantine { .. } => "quarantine",
            Self::Release { .. } => "release",
            Self::Resync { .. } => "resync",
            Self::NotePrunePending { .. } => "note_prune_pending",
            Self::ConfirmPrune { .. } => "confirm_prune",
            Self::BindUpstreams { .. } => "bind_upstreams",
            Self::TakeName { .. } => "take_name",
            Self::Abandon { .. } => "abandon",
        }
    }
}
