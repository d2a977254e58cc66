//! What a legal manifest says that has no effect yet, each by name.
//!
//! Storing a policy and ignoring it in silence would be a promise the engine does not keep.

use super::{Emit, Manifest, Trigger};
use crate::schema::{CompiledSchema, SchemaError};

/// Sentences for the publisher, in order of the manifest's fields.
pub fn warnings(manifest: &Manifest) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(Err(SchemaError::UnresolvableRef(reason))) =
        manifest.status_schema.as_ref().map(CompiledSchema::try_compile)
    {
        warnings.push(format!("status_schema: {reason}; it stays advisory"));
    }
    for reaction in &manifest.reactions {
        let what = match reaction.trigger {
            Trigger::Operation => "operations are not run yet",
            Trigger::Reactor => "reactor reactions are not run yet",
            _ => "",
        };
        if !what.is_empty() {
            warnings.push(format!("reaction `{}`: {what}", reaction.name));
        }
        if reaction.emits.contains(&Emit::Children) && reaction.trigger != Trigger::SpecChange {
            warnings
                .push(format!("reaction `{}`: only a specChange reaction composes children", reaction.name));
        }
        if reaction.verb.is_some() && reaction.trigger != Trigger::Operation {
            warnings.push(format!("reaction `{}`: a verb means something to operations only", reaction.name));
        }
    }
    let knobs = &manifest.knobs;
    let stored = [
        (
            knobs.resync_interval_secs.is_some_and(|secs| secs > 0),
            "resync_interval_secs: stored, but resources are observed on demand only, not periodically yet",
        ),
        (knobs.drift_policy.is_some(), "drift_policy: stored, but drift is not detected yet"),
        (manifest.compare.is_some(), "compare: stored, but observed values are not compared yet"),
        (
            !manifest.immutable.is_empty(),
            "immutable: stored, but changes of these fields are not held back yet",
        ),
        (
            manifest.on_immutable_change.is_some(),
            "on_immutable_change: stored, but changes of immutable fields are not held back yet",
        ),
    ];
    warnings.extend(stored.into_iter().filter(|(given, _)| *given).map(|(_, text)| text.to_owned()));
    warnings
}
