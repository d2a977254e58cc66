//! What a published version may become.
//!
//! Resources, composers and workers rely on a version meaning what it meant. A change is let through only when it
//! can be shown that everything valid stays valid and everything promised stays promised; the check refuses some
//! harmless changes and lets no harmful one pass. There is no override: a new version is always possible.

mod schema;

use super::{Emit, Manifest, ReactionSpec, Trigger};
use crate::json;
use crate::resource::Reaction;

/// Whether publishing `new` over `old` would change nothing.
pub fn same(old: &Manifest, new: &Manifest) -> bool {
    if old == new {
        return true;
    }
    match (serde_json::to_value(old), serde_json::to_value(new)) {
        (Ok(old), Ok(new)) => json::equal(&old, &new),
        _ => false,
    }
}

/// Every change from `old` to `new` that could break someone; empty when it may be published.
///
/// Knobs, description, provider, compare, printer columns and the advisory status schema are policy or show:
/// they never break.
pub fn breaking_changes(old: &Manifest, new: &Manifest) -> Vec<String> {
    let mut changes = Vec::new();
    schema::breaking("spec_schema", old.spec_schema.as_ref(), new.spec_schema.as_ref(), &mut changes);
    schema::breaking("config_schema", old.config_schema.as_ref(), new.config_schema.as_ref(), &mut changes);
    reactions(old, new, &mut changes);
    finalizers(old, new, &mut changes);
    for pointer in new.immutable.iter().filter(|pointer| !old.immutable.contains(pointer)) {
        changes.push(format!("immutable: `{pointer}` becomes immutable"));
    }
    changes
}

fn reactions(old: &Manifest, new: &Manifest, changes: &mut Vec<String>) {
    let find = |manifest: &'_ Manifest, name: &str| manifest.reactions.iter().position(|r| r.name == name);
    for before in &old.reactions {
        match find(new, &before.name) {
            None => changes.push(format!("reaction `{}` is removed", before.name)),
            Some(index) => repurposed(before, &new.reactions[index], changes),
        }
    }
    for added in new.reactions.iter().filter(|r| find(old, &r.name).is_none()) {
        // Which of these a resource has is fixed when it is declared, so older resources would never run it.
        let fixed_at_declaration = matches!(
            added.trigger,
            Trigger::SpecChange | Trigger::ChildrenSettled | Trigger::DeleteRequested
        );
        if fixed_at_declaration {
            changes.push(format!(
                "reaction `{}` is added, which resources of this version do not have",
                added.name
            ));
        }
    }
}

fn repurposed(before: &ReactionSpec, after: &ReactionSpec, changes: &mut Vec<String>) {
    let name = &before.name;
    if before.trigger != after.trigger {
        changes.push(format!("reaction `{name}` answers another trigger"));
    }
    if before.verb != after.verb {
        let verb = |verb: &Option<String>| verb.clone().unwrap_or_else(|| "none".to_owned());
        changes.push(format!("reaction `{name}`: verb {} becomes {}", verb(&before.verb), verb(&after.verb)));
    }
    if before.emits.iter().any(|emit| !after.emits.contains(emit)) {
        changes.push(format!("reaction `{name}` emits less"));
    }
    // More status is more to read; anything else that is new changes what the reaction is for.
    let harmless = |emit: &Emit| matches!(emit, Emit::Status | Emit::Conditions);
    if after.emits.iter().any(|emit| !before.emits.contains(emit) && !harmless(emit)) {
        changes.push(format!("reaction `{name}` emits what it did not"));
    }
}

fn finalizers(old: &Manifest, new: &Manifest, changes: &mut Vec<String>) {
    // In order: they are stripped in reverse order, and deletes under way rely on it.
    let (before, after) = (old.shape().finalizers, new.shape().finalizers);
    if before != after {
        let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        changes.push(format!("finalizers {} become {}", list(&before), list(&after)));
    } else {
        // The same finalizers, but another reaction may have come to strip one.
        for finalizer in &before {
            let by = |manifest: &Manifest| {
                manifest.reaction(Reaction::Teardown, Some(finalizer)).map(|r| r.name.clone())
            };
            if by(old) != by(new) {
                changes.push(format!("finalizer `{finalizer}` is stripped by another reaction"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
