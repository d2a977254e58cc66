//! The conditions users see: `Synced` and `Ready` always, then what the engine and the providers add.

use super::{Condition, ConditionStatus, Gate, Phase, Reaction, ResourceState, Standing};
use crate::ids::Timestamp;
use std::collections::BTreeMap;

impl ResourceState {
    /// All conditions, `Synced` and `Ready` first, the rest by type. Provider conditions merge by type, own <
    /// compose < rollup; `Synced` and `Ready` are the engine's alone.
    pub fn conditions(&self) -> Vec<Condition> {
        let mut others: BTreeMap<String, Condition> = BTreeMap::new();
        for slot in [&self.conditions_own, &self.conditions_compose, &self.conditions_rollup] {
            for condition in slot {
                others.insert(condition.condition_type.clone(), condition.clone());
            }
        }
        others.remove("Synced");
        others.remove("Ready");
        if !self.unresolved.is_empty() {
            let first = &self.unresolved[0];
            let message = format!(
                "{} of {} (for {}): {}",
                first.source_field, first.upstream, first.field, first.reason
            );
            let condition = self.condition("InputsResolved", false, "FieldMissing", message, self.updated_at);
            others.insert(condition.condition_type.clone(), condition);
        }
        if self.rollup_failed {
            let message = self.failure_message();
            let condition = self.condition("RolledUp", false, "RollupFailed", message, self.updated_at);
            others.insert(condition.condition_type.clone(), condition);
        }
        for condition in self.composition_conditions() {
            others.insert(condition.condition_type.clone(), condition);
        }
        if let Some(failure) = self.last_failure.as_ref().filter(|last| last.reaction == Reaction::Observe) {
            let condition =
                self.condition("Observed", false, "ObservationFailed", failure.message.clone(), failure.at);
            others.insert(condition.condition_type.clone(), condition);
        }
        let mut all = vec![self.synced_condition(), self.ready_condition()];
        all.extend(others.into_values());
        all
    }

    fn synced_condition(&self) -> Condition {
        let synced = self.is_synced();
        let (reason, message) = if synced {
            ("Reconciled", String::new())
        } else if self.has_failed() {
            ("ReconcileFailed", self.failure_message())
        } else if let Some(edge) = self.edges.iter().find(|edge| edge.unbound) {
            ("MissingUpstream", format!("{} is not there yet", edge.upstream_ref))
        } else if self.gate == Gate::Blocked {
            ("Blocked", "an upstream will not become Ready by itself".to_owned())
        } else if self.gate == Gate::Waiting || !self.unresolved.is_empty() {
            ("WaitingForUpstream", "an upstream is not Ready yet".to_owned())
        } else if self.attempts > 0 {
            ("Retrying", self.failure_message())
        } else {
            ("Reconciling", format!("generation {} is not reconciled yet", self.generation))
        };
        self.condition("Synced", synced, reason, message, self.synced_since)
    }

    fn ready_condition(&self) -> Condition {
        let phase = self.phase();
        let (reason, message) = match phase {
            Phase::Ready => ("Ready", String::new()),
            Phase::Failed => ("ReconcileFailed", self.failure_message()),
            Phase::Degraded if !self.healthy => ("Unhealthy", self.reported_reason()),
            Phase::Degraded if self.rollup_failed => ("RollupFailed", self.failure_message()),
            Phase::Degraded if self.culprit.is_none() && !self.conflicts.is_empty() => {
                ("Conflict", super::composition_conditions::conflict_message(&self.conflicts))
            }
            Phase::Degraded => ("ChildNotReady", "a descendant failed, is degraded or is blocked".to_owned()),
            Phase::Deleting => ("Deleting", self.failure_message()),
            Phase::Orphaned => ("Orphaned", "its composer no longer wants it".to_owned()),
            Phase::Quarantined => {
                let reason = self.quarantine.as_ref().map_or("", |quarantine| &quarantine.reason);
                ("Quarantined", reason.to_owned())
            }
            Phase::Reconciling
                if !self.work_is_behind()
                    && !self.composition_is_behind()
                    && self.subtree == Standing::Open =>
            {
                ("SubtreeOpen", "a descendant is not settled yet".to_owned())
            }
            _ => ("Reconciling", self.failure_message()),
        };
        self.condition("Ready", phase == Phase::Ready, reason, message, self.ready_since)
    }

    /// The message of the last failure, if it still stands.
    fn failure_message(&self) -> String {
        self.last_failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default()
    }

    /// What the provider said when it reported the resource unhealthy.
    fn reported_reason(&self) -> String {
        self.conditions_own
            .iter()
            .find(|condition| {
                condition.condition_type == "Ready" && condition.status == ConditionStatus::False
            })
            .map_or_else(
                || "the provider reports it unhealthy".to_owned(),
                |condition| condition.message.clone(),
            )
    }

    pub(super) fn condition(
        &self,
        condition_type: &str,
        holds: bool,
        reason: &str,
        message: String,
        last_transition: Timestamp,
    ) -> Condition {
        Condition {
            condition_type: condition_type.to_owned(),
            status: if holds { ConditionStatus::True } else { ConditionStatus::False },
            reason: reason.to_owned(),
            message,
            last_transition,
            observed_generation: self.synced_gen,
        }
    }
}
