//! What may be asked of a resource. One handler file per command under `decide/`.

use super::{Condition, Edge, Shape, Standing};
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
    CompletePass {
        pass_id: PassId,
        created: u64,
        changed: u64,
        dropped: u64,
        at: Timestamp,
    },
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
        kept: bool,
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
    /// Asks for the end of a child that its composer dropped, if it is still dropped.
    RemoveDropped {
        at: Timestamp,
    },
    /// Asks for the end of the resource.
    RequestDeletion {
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
            Self::CompletePass { .. } => "complete_pass",
            Self::AbandonPass { .. } => "abandon_pass",
            Self::Drop { .. } => "drop",
            Self::ConfirmPropagated { .. } => "confirm_propagated",
            Self::RaiseSubtree { .. } => "raise_subtree",
            Self::RequestRecompose { .. } => "request_recompose",
            Self::RemoveDropped { .. } => "remove_dropped",
            Self::RequestDeletion { .. } => "request_deletion",
        }
    }
}
