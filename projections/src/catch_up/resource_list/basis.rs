//! What the next event of a resource needs, so that the domain can derive its next phase.
//!
//! The list stores no state: a page reads it from the heads. But a fold must go on from where the last batch
//! left off, and heads may be ahead of the list. So each row carries the part of the state that phases come
//! from, which for most resources is a few dozen bytes. The phase itself is still derived by the domain alone:
//! a [`Basis`] turns back into a state on which events are applied as on any other.
//!
//! That nothing is missing is a law with a test: folding from a basis and folding everything give the same
//! phases and the same bases. [`Basis::of`] names every field of the state, so that a new one does not compile
//! until somebody has decided on which side of the line it is.

use converge_domain::resource::{
    Deletion, DroppedChild, Identity, Input, Pass, Quarantine, ResourceState, Shape, Standing, Unresolved,
};
use converge_domain::{Generation, ResourceId, ResourceRef, Round, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The part of a state that phases are derived from. What has its usual value is not stored.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Basis {
    #[serde(skip_serializing_if = "is_usual")]
    works: bool,
    #[serde(skip_serializing_if = "is_usual")]
    composes: bool,
    #[serde(skip_serializing_if = "is_usual")]
    rolls_up: bool,
    #[serde(skip_serializing_if = "is_usual")]
    generation: Generation,
    #[serde(skip_serializing_if = "is_usual")]
    round: Round,
    #[serde(skip_serializing_if = "is_usual")]
    compose_round: Round,
    #[serde(skip_serializing_if = "is_usual")]
    worked: Option<(Generation, Round)>,
    #[serde(skip_serializing_if = "is_usual")]
    composed: Option<(Generation, Round)>,
    #[serde(skip_serializing_if = "is_usual")]
    synced: Generation,
    #[serde(skip_serializing_if = "is_usual")]
    failed: Option<Generation>,
    #[serde(skip_serializing_if = "is_usual")]
    unhealthy: bool,
    #[serde(skip_serializing_if = "is_usual")]
    pass: Option<Pass>,
    /// Target, source and source field of every value that flowed in: a changed edge asks which are answered.
    #[serde(skip_serializing_if = "is_usual")]
    inputs: Vec<(String, ResourceId, String)>,
    /// Some flow has no value. Which one is nothing to the phase.
    #[serde(skip_serializing_if = "is_usual")]
    unresolved: bool,
    #[serde(skip_serializing_if = "is_usual")]
    subtree: Standing,
    #[serde(skip_serializing_if = "is_usual")]
    subtree_digest: Option<String>,
    #[serde(skip_serializing_if = "is_usual")]
    rolled_digest: Option<String>,
    #[serde(skip_serializing_if = "is_usual")]
    rollup_owed: bool,
    #[serde(skip_serializing_if = "is_usual")]
    rollup_quiet: bool,
    #[serde(skip_serializing_if = "is_usual")]
    rollup_failed: bool,
    /// Dropped by its composer, and whether it is kept.
    #[serde(skip_serializing_if = "is_usual")]
    dropped: Option<bool>,
    #[serde(skip_serializing_if = "is_usual")]
    deleting: bool,
    #[serde(skip_serializing_if = "is_usual")]
    quarantined: bool,
    /// Waits for its name.
    #[serde(skip_serializing_if = "is_usual")]
    waits: bool,
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Basis {
    /// What of `state` is needed further on.
    pub fn of(state: &ResourceState) -> Self {
        let ResourceState {
            shape,
            inputs,
            unresolved,
            generation,
            round,
            compose_round,
            worked,
            composed,
            synced_gen,
            failed_gen,
            healthy,
            pass,
            subtree,
            subtree_digest,
            rolled_digest,
            rollup_owed,
            rollup_quiet,
            rollup_failed,
            dropped,
            deletion,
            quarantine,
            behind,
            // Stored in columns.
            identity: _,
            labels: _,
            // Rows of what is deleted are gone.
            deleted: _,
            // No phase depends on these, nor does any field above.
            kind_version: _,
            spec: _,
            provider_config_ref: _,
            deletion_protection: _,
            edges: _,
            gate: _,
            revision: _,
            epoch: _,
            claim: _,
            claimed_version: _,
            attempts: _,
            retry_at: _,
            due_since: _,
            last_failure: _,
            culprit: _,
            resync: _,
            resynced: _,
            conflicts: _,
            prune_held: _,
            prune_confirmed: _,
            prune_pending: _,
            configs: _,
            same_input: _,
            unstable_passes: _,
            unstable_child: _,
            recomposed_digest: _,
            propagation_owed: _,
            finalizers: _,
            status_own: _,
            status_compose: _,
            status_rollup: _,
            conditions_own: _,
            conditions_compose: _,
            conditions_rollup: _,
            synced_since: _,
            ready_since: _,
            created_at: _,
            updated_at: _,
            outward: _,
            sequence: _,
        } = state;
        let flow = |input: &Input| (input.field.clone(), input.source, input.source_field.clone());
        Self {
            works: shape.works,
            composes: shape.composes,
            rolls_up: shape.rolls_up,
            generation: *generation,
            round: *round,
            compose_round: *compose_round,
            worked: *worked,
            composed: *composed,
            synced: *synced_gen,
            failed: *failed_gen,
            unhealthy: !healthy,
            pass: pass.clone(),
            inputs: inputs.iter().map(flow).collect(),
            unresolved: !unresolved.is_empty(),
            subtree: *subtree,
            subtree_digest: subtree_digest.clone(),
            rolled_digest: rolled_digest.clone(),
            rollup_owed: *rollup_owed,
            rollup_quiet: *rollup_quiet,
            rollup_failed: *rollup_failed,
            dropped: dropped.as_ref().map(|dropped| dropped.kept),
            deleting: deletion.is_some(),
            quarantined: quarantine.is_some(),
            waits: behind.is_some(),
        }
    }

    /// A state of `identity` on which the next event has the effect on the phase that it has on the whole state.
    pub fn state(&self, identity: Identity) -> ResourceState {
        let flow = |(field, source, source_field): &(String, ResourceId, String)| Input {
            field: field.clone(),
            source: *source,
            source_field: source_field.clone(),
            source_sequence: 0,
            value: Arc::new(Value::Null),
        };
        let some_flow = Unresolved {
            field: String::new(),
            upstream: ResourceRef::new("", ""),
            source_field: String::new(),
            reason: String::new(),
        };
        ResourceState {
            identity: Some(Arc::new(identity)),
            shape: Arc::new(Shape {
                works: self.works,
                composes: self.composes,
                rolls_up: self.rolls_up,
                ..Shape::default()
            }),
            inputs: self.inputs.iter().map(flow).collect(),
            unresolved: if self.unresolved { vec![some_flow] } else { Vec::new() },
            generation: self.generation,
            round: self.round,
            compose_round: self.compose_round,
            worked: self.worked,
            composed: self.composed,
            synced_gen: self.synced,
            failed_gen: self.failed,
            healthy: !self.unhealthy,
            pass: self.pass.clone(),
            subtree: self.subtree,
            subtree_digest: self.subtree_digest.clone(),
            rolled_digest: self.rolled_digest.clone(),
            rollup_owed: self.rollup_owed,
            rollup_quiet: self.rollup_quiet,
            rollup_failed: self.rollup_failed,
            dropped: self.dropped.map(|kept| DroppedChild {
                former_dependents: Vec::new(),
                kept,
                kept_until: None,
            }),
            behind: self.waits.then_some(ResourceId(uuid::Uuid::nil())),
            quarantine: self.quarantined.then(|| Quarantine { reason: String::new(), since: Timestamp(0) }),
            deletion: self.deleting.then_some(Deletion { requested_at: Timestamp(0), open: false }),
            ..ResourceState::default()
        }
    }
}

#[cfg(test)]
mod tests;
