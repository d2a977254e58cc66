//! The smaller facts a resource's events and state are made of.

use super::Reaction;
use crate::ids::{ClaimId, Epoch, Generation, PassId, ResourceId, ResourceRef, Round, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// An edge: the resource that carries it needs `upstream` Ready first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edge {
    pub upstream: ResourceId,
    /// What the user or composer called it, for messages.
    pub upstream_ref: ResourceRef,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<FieldFlow>,
    /// Somebody else holds the name that the composer wanted for the upstream: there is nothing to wait for until that
    /// is resolved, and what its holder does is no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conflicted: bool,
    /// Nobody bears the upstream's name yet (or whoever does is going away): `upstream` stands for the name itself, and
    /// the edge is bound when somebody does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unbound: bool,
}

/// Copies `source_field` of the upstream's status into `dependent_field` of the spec. Both RFC 6901.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FieldFlow {
    pub dependent_field: String,
    pub source_field: String,
}

/// A value that flowed in, with its provenance.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Target pointer in the spec.
    pub field: String,
    pub source: ResourceId,
    pub source_field: String,
    /// The upstream's sequence the value was read at.
    pub source_sequence: u64,
    pub value: Arc<Value>,
}

/// A flow that has no value yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unresolved {
    pub field: String,
    pub upstream: ResourceRef,
    pub source_field: String,
    /// Why: missing, null, or an index that does not apply.
    pub reason: String,
}

/// Whether upstreams let a due resource run. Only new runs are held; claims re-check it as a guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Every upstream was Ready and every flow resolved at the last evaluation (or there are none).
    #[default]
    Open,
    /// Waits on an upstream that is still moving, or for a field of a Ready one.
    Waiting,
    /// Waits on an upstream that will not move by itself.
    Blocked,
}

/// A live claim: the fence is `epoch` and `claim_id` together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    pub epoch: Epoch,
    pub claim_id: ClaimId,
    pub reaction: Reaction,
    pub generation: Generation,
    /// `round` for work, `compose_round` for compose, the number of the resync for observe.
    pub round: Round,
    /// Digest of the subtree a rollup was claimed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtree_digest: Option<String>,
    /// For a teardown: the finalizer to strip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    pub session: SessionId,
    pub worker: String,
    pub claimed_at: Timestamp,
    /// None: the kind sets no task deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
}

/// An accepted composition that is being written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pass {
    pub pass_id: PassId,
    /// The claim whose staged output is being applied.
    pub claim_id: ClaimId,
    pub generation: Generation,
    pub compose_round: Round,
    /// Hex SHA-256 of the whole output.
    pub digest: String,
    pub children: u64,
    pub edges: u64,
}

/// A child that its composer does not get, because somebody else holds the name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Conflict {
    pub child: ResourceRef,
    pub holder: ResourceId,
    /// The holder's composer; None: a user declared it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ResourceId>,
}

/// Removals that a pass held back for an operator to confirm.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeldPrune {
    /// Over the children that would go: a confirmation is for exactly these.
    pub digest: String,
    /// How many would go, of how many.
    pub children: u64,
    pub of: u64,
}

/// A dropped child that stays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PendingPrune {
    pub child: ResourceRef,
    /// The former dependent that does not follow; None: it is protected against deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependent: Option<ResourceRef>,
}

/// An operator's hard freeze.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quarantine {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub since: Timestamp,
}

/// The last failure of a resource's own reaction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Failure {
    pub reaction: Reaction,
    pub message: String,
    pub terminal: bool,
    pub attempt: u32,
    pub at: Timestamp,
}

/// A condition in Kubernetes' convention.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: ConditionStatus,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub last_transition: Timestamp,
    #[serde(default)]
    pub observed_generation: Generation,
}

/// `True`, `False` or `Unknown`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ConditionStatus {
    True,
    False,
    #[default]
    Unknown,
}

/// The derived lifecycle phase; computed only in `phase.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Phase {
    Deleting,
    Quarantined,
    Failed,
    Orphaned,
    Degraded,
    Ready,
    Reconciling,
}

impl Phase {
    /// All phases, in precedence order.
    pub const ALL: [Self; 7] = [
        Self::Deleting,
        Self::Quarantined,
        Self::Failed,
        Self::Orphaned,
        Self::Degraded,
        Self::Ready,
        Self::Reconciling,
    ];

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deleting => "Deleting",
            Self::Quarantined => "Quarantined",
            Self::Failed => "Failed",
            Self::Orphaned => "Orphaned",
            Self::Degraded => "Degraded",
            Self::Ready => "Ready",
            Self::Reconciling => "Reconciling",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Phase {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.as_str().eq_ignore_ascii_case(word))
            .ok_or_else(|| format!("unknown phase `{word}`"))
    }
}
