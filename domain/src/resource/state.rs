//! A resource as the fold of its events.

use super::{
    Claim, Condition, Conflict, Edge, Failure, Gate, HeldPrune, Input, Pass, PendingPrune, Quarantine, Shape,
    Standing, Unresolved,
};
use crate::ids::{Epoch, Generation, KindRef, ResourceId, ResourceRef, Revision, Round, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything the log says about one resource. Serialised into `head.state`, so field names are short-lived
/// only in the cache: a change of shape here needs no upcaster, the head is rebuilt from the log.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ResourceState {
    /// None until `Created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<Identity>>,
    pub kind_version: u16,
    pub shape: Arc<Shape>,

    /// Declared spec, without flowed values.
    pub spec: Arc<Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletion_protection: bool,
    /// Edges to upstreams, in declared order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// Values that flowed in, by target pointer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Flows whose source field is missing or null at a Ready upstream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<Unresolved>,
    pub gate: Gate,

    pub revision: Revision,
    pub generation: Generation,
    #[serde(default)]
    pub round: Round,
    #[serde(default)]
    pub compose_round: Round,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked: Option<(Generation, Round)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composed: Option<(Generation, Round)>,
    #[serde(default)]
    pub synced_gen: Generation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_gen: Option<Generation>,
    pub healthy: bool,

    #[serde(default)]
    pub epoch: Epoch,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The kind version last claimed; teardown runs under it. None: never claimed, nothing to tear down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_version: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<Pass>,
    /// Transient attempts of the current decision that failed.
    #[serde(default)]
    pub attempts: u32,
    /// Not claimed before this instant (backoff, or `requeue_after_secs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// When it last became due; orders the queue.
    #[serde(default)]
    pub due_since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,

    /// For a composite: derived from its direct children's standings. A leaf's stays AllReady.
    pub subtree: Standing,
    /// Digest of the children's membership, phases and statuses at the last evaluation that found it settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtree_digest: Option<String>,
    /// Digest that the last recorded rollup saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_digest: Option<String>,
    /// A rollup is owed as soon as the subtree is settled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rollup_owed: bool,
    /// The owed rollup is due only because a descendant's status changed; the phase is kept meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rollup_quiet: bool,
    /// The last rollup failed terminally.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rollup_failed: bool,
    /// The child that makes the subtree impaired, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub culprit: Option<ResourceId>,

    /// The one that still bears its name; it waits for the name until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<ResourceId>,
    /// An operator set it aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
    /// Resyncs asked for, and the last of them that was answered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resync: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resynced: u64,
    /// Children of the last pass that others hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// Removals of the last pass that wait for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune_held: Option<HeldPrune>,
    /// The digest of the removals that an operator confirmed, for the next pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune_confirmed: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prune_pending: Vec<PendingPrune>,
    /// Provider configs that the last pass listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<String>,
    /// The next pass composes from the same input as the last one did: it should change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_input: bool,
    /// Passes in a row that changed something though their input was the same, and one child they changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unstable_passes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstable_child: Option<ResourceRef>,
    /// Digest of the children whose statuses were last a reason to compose again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recomposed_digest: Option<String>,
    /// Status changed after dependents had already run; they are yet to see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub propagation_owed: bool,
    /// The composer no longer wants this child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DroppedChild>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Deletion>,
    /// Finalizers not stripped yet; meaningful once deletion is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// The `Deleted` event ended the stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,

    /// Status slots; users see the top-level merge own < compose < rollup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_own: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_compose: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_rollup: Option<Arc<Value>>,
    /// Conditions that providers reported, by slot then in reported order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions_own: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions_compose: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions_rollup: Vec<Condition>,
    /// When `Synced` and `Ready` last changed their status.
    #[serde(default)]
    pub synced_since: Timestamp,
    #[serde(default)]
    pub ready_since: Timestamp,
    #[serde(default)]
    pub created_at: Timestamp,
    #[serde(default)]
    pub updated_at: Timestamp,
    /// Sequence of the last event that changed what owner and dependents see (phase or status).
    #[serde(default)]
    pub outward: u64,
    /// Number of events applied: this state's own sequence.
    #[serde(default)]
    pub sequence: u64,
}

/// What never changes about a resource.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Identity {
    pub id: ResourceId,
    pub kind: String,
    pub name: String,
    /// The composers above, nearest first; empty for a top-level resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<ResourceId>,
}

/// A child its composer no longer wants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DroppedChild {
    /// Wanted siblings that depended on it; it stays until each has followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_dependents: Vec<ResourceId>,
    /// Set aside under its kind's grace window instead of removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// When the grace window ends; None of a kept one: an earlier version set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<Timestamp>,
}

/// An accepted delete.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Deletion {
    pub requested_at: Timestamp,
    /// Nothing that depends on it and nothing it owns is left: its finalizers may run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

impl Identity {
    /// The direct owner, if any.
    pub fn owner(&self) -> Option<ResourceId> {
        self.ancestors.first().copied()
    }

    /// The top-level resource above, or itself.
    pub fn root(&self) -> ResourceId {
        self.ancestors.last().copied().unwrap_or(self.id)
    }

    /// `kind/name`.
    pub fn reference(&self) -> ResourceRef {
        ResourceRef::new(&self.kind, &self.name)
    }
}

impl ResourceState {
    /// The identity of a created resource.
    ///
    /// # Panics
    /// On a state that no `Created` event was applied to; every path past the gateway has one.
    #[expect(clippy::expect_used, reason = "a stream starts with Created; anything else is a corrupt log")]
    pub fn id(&self) -> &Identity {
        self.identity.as_deref().expect("a resource stream starts with Created")
    }

    /// The kind and version it is declared at.
    pub fn kind_ref(&self) -> KindRef {
        KindRef::new(&self.id().kind, self.kind_version)
    }

    /// The kind and version that tasks for it must be served under: a teardown runs under the one last claimed.
    pub fn task_kind_ref(&self) -> KindRef {
        match (&self.deletion, self.claimed_version) {
            (Some(_), Some(version)) => KindRef::new(&self.id().kind, version),
            _ => self.kind_ref(),
        }
    }

    /// A live resource: created and not deleted.
    pub fn exists(&self) -> bool {
        self.identity.is_some() && !self.deleted
    }

    /// Names that it waits for, as ids: those of the children that others hold, and its own. (An unbound edge has the name for
    /// its upstream.)
    pub fn awaited_names(&self) -> impl Iterator<Item = ResourceId> + '_ {
        let own = self.behind.map(|_| self.id().reference().name_id());
        self.conflicts.iter().map(|conflict| conflict.child.name_id()).chain(own)
    }

    /// What stands for the protection of everything under a root, in edges: whoever is protected has one to it, so that a delete
    /// finds them without walking the tree.
    pub fn protection_id(root: ResourceId) -> ResourceId {
        ResourceId(crate::ids::named("protection", &root.to_string()))
    }

    /// Whether anything of it waits for a name to be taken or freed.
    pub fn awaits_names(&self) -> bool {
        self.behind.is_some() || !self.conflicts.is_empty() || self.edges.iter().any(|edge| edge.unbound)
    }

    /// The spec a worker sees: declared values with flowed ones laid over them.
    pub fn effective_spec(&self) -> Value {
        crate::value_flow::effective_spec(&self.spec, &self.inputs)
    }

    /// The status users and value flows see.
    pub fn visible_status(&self) -> Value {
        crate::value_flow::merge_status([
            self.status_own.as_deref(),
            self.status_compose.as_deref(),
            self.status_rollup.as_deref(),
        ])
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
