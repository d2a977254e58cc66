//! What a composer says about its children beyond their phases.

use super::{Condition, Conflict, ResourceState};

/// Passes over the same input that must have changed something before a composer is called unstable: one may be chance
/// (a child was lost meanwhile), two in a row are not.
const UNSTABLE_PASSES: u64 = 2;

impl ResourceState {
    pub(super) fn composition_conditions(&self) -> Vec<Condition> {
        let mut conditions = Vec::new();
        let mut add = |condition_type: &str, reason: &str, message: String| {
            conditions.push(self.condition(condition_type, true, reason, message, self.updated_at));
        };
        if !self.conflicts.is_empty() {
            add("Conflict", "NameHeld", conflict_message(&self.conflicts));
        }
        if let Some(held) = &self.prune_held {
            let message = format!(
                "{} of {} children would be removed, more than the kind allows at once; confirm it with digest {}",
                held.children, held.of, held.digest
            );
            add("PruneHeld", "AboveShare", message);
        }
        if let Some(first) = self.prune_pending.first() {
            let more = match self.prune_pending.len() {
                1 => String::new(),
                n => format!("; and {} more", n - 1),
            };
            let (reason, why) = match &first.dependent {
                Some(dependent) => ("DependentHasNotFollowed", format!("{dependent} does not follow")),
                None => ("DeletionProtection", "it is protected against deletion".to_owned()),
            };
            add("PrunePending", reason, format!("{} stays, because {why}{more}", first.child));
        }
        if self.unstable_passes >= UNSTABLE_PASSES {
            let child = self.unstable_child.as_ref().map(|child| format!(", such as {child}"));
            let message = format!(
                "{} compositions of the same input in a row each changed children{}; a composer must be a function of \
                 its input",
                self.unstable_passes,
                child.unwrap_or_default()
            );
            add("UnstableComposition", "OutputVaries", message);
        }
        conditions
    }
}

/// Names the children that others hold.
pub(super) fn conflict_message(conflicts: &[Conflict]) -> String {
    let named = |conflict: &Conflict| match &conflict.owner {
        Some(owner) => format!("{} belongs to another composer ({owner})", conflict.child),
        None => format!("{} was declared by a user", conflict.child),
    };
    conflicts.iter().map(named).collect::<Vec<_>>().join("; ")
}
