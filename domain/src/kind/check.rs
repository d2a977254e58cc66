//! Whether a manifest is legal, and what of it this build only stores.

use super::{Emit, Manifest, ReactionSpec, Trigger};
use crate::document::names;
use crate::json::Pointer;
use crate::schema::{CompiledSchema, SchemaError};
use crate::violation::Violation;
use serde_json::Value;
use std::collections::HashMap;

/// Longest reaction name, verb, finalizer, provider or column heading, in bytes.
const WORD_LENGTH_MAX: usize = 253;
/// Longest description, in bytes.
const DESCRIPTION_LENGTH_MAX: usize = 16 * 1024;

/// Every reason why the manifest cannot be published; empty when it can. Pointers are relative to the manifest.
pub fn check(manifest: &Manifest) -> Vec<Violation> {
    let mut faults = Vec::new();
    identity(manifest, &mut faults);
    reactions(manifest, &mut faults);
    teardown(manifest, &mut faults);
    schemas(manifest, &mut faults);
    pointers(manifest, &mut faults);
    policy(manifest, &mut faults);
    faults
}

fn identity(manifest: &Manifest, faults: &mut Vec<Violation>) {
    if let Err(message) = names::check_kind(&manifest.kind) {
        faults.push(Violation::new("/kind", message));
    }
    if names::TYPE_WORDS.contains(&manifest.kind.as_str()) {
        let message =
            format!("`{}` is the word for a type of document and cannot name a kind", manifest.kind);
        faults.push(Violation::new("/kind", message));
    }
    if let Err(message) = names::check_kind_version(u64::from(manifest.kind_version)) {
        faults.push(Violation::new("/kind_version", message));
    }
    if manifest.description.len() > DESCRIPTION_LENGTH_MAX {
        let message = format!("has more than {DESCRIPTION_LENGTH_MAX} bytes");
        faults.push(Violation::new("/description", message));
    }
    if let Some(provider) = &manifest.provider {
        check_word("/provider", provider, faults);
    }
}

fn reactions(manifest: &Manifest, faults: &mut Vec<Violation>) {
    at_most_one(manifest, "reaction that works on specChange", faults, |r| {
        r.trigger == Trigger::SpecChange && !r.emits.contains(&Emit::Children)
    });
    at_most_one(manifest, "composer (a specChange reaction that emits children)", faults, composes);
    at_most_one(manifest, "rollup (a childrenSettled reaction)", faults, |r| {
        r.trigger == Trigger::ChildrenSettled
    });
    at_most_one(manifest, "reactor reaction", faults, |r| r.trigger == Trigger::Reactor);

    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let mut by_verb: HashMap<&str, usize> = HashMap::new();
    for (index, reaction) in manifest.reactions.iter().enumerate() {
        let place = format!("/reactions/{index}");
        check_word(&format!("{place}/name"), &reaction.name, faults);
        if let Some(first) = by_name.insert(&reaction.name, index) {
            let message = format!("`{}` is already the name of reaction {first}", reaction.name);
            faults.push(Violation::new(format!("{place}/name"), message));
        }
        if composes(reaction) {
            if !reaction.emits.contains(&Emit::Status) && !reaction.emits.contains(&Emit::Conditions) {
                let message = "a composer must also emit `status` or `conditions`";
                faults.push(Violation::new(format!("{place}/emits"), message));
            }
            if reaction.emits.contains(&Emit::SideEffect) {
                faults.push(Violation::new(format!("{place}/emits"), "a composer may not emit `sideEffect`"));
            }
        }
        let side_effect_alone =
            !reaction.emits.is_empty() && reaction.emits.iter().all(|emit| *emit == Emit::SideEffect);
        if reaction.trigger == Trigger::Reactor && !side_effect_alone {
            faults.push(Violation::new(
                format!("{place}/emits"),
                "a reactor reaction emits `sideEffect` alone",
            ));
        }
        match (&reaction.verb, reaction.trigger) {
            (Some(verb), Trigger::Operation) => {
                check_word(&format!("{place}/verb"), verb, faults);
                if let Some(first) = by_verb.insert(verb, index) {
                    let message = format!("`{verb}` is already the verb of reaction {first}");
                    faults.push(Violation::new(format!("{place}/verb"), message));
                }
            }
            (None, Trigger::Operation) => {
                faults.push(Violation::new(format!("{place}/verb"), "is required for an operation"));
            }
            _ => {}
        }
    }
}

fn teardown(manifest: &Manifest, faults: &mut Vec<Violation>) {
    if let Some(finalizer) = &manifest.finalizer_name {
        check_word("/finalizer_name", finalizer, faults);
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, reaction) in manifest.reactions.iter().enumerate() {
        let place = format!("/reactions/{index}/finalizer");
        if let Some(finalizer) = &reaction.finalizer {
            check_word(&place, finalizer, faults);
        }
        if reaction.trigger != Trigger::DeleteRequested {
            continue;
        }
        match reaction.finalizer.as_deref().or(manifest.finalizer_name.as_deref()) {
            None => {
                let message = "is required for deleteRequested, here or as the manifest's `finalizer_name`";
                faults.push(Violation::new(place, message));
            }
            // One finalizer is stripped by one reaction; two would race to be the one that answers.
            Some(finalizer) => {
                if let Some(first) = seen.insert(finalizer, index) {
                    let message = format!("`{finalizer}` is already the finalizer of reaction {first}");
                    faults.push(Violation::new(place, message));
                }
            }
        }
    }
}

fn schemas(manifest: &Manifest, faults: &mut Vec<Violation>) {
    let mut compile = |place: &str, schema: Option<&Value>, advisory: bool| {
        let Some(Err(error)) = schema.map(CompiledSchema::try_compile) else {
            return;
        };
        match error {
            SchemaError::UnresolvableRef(_) if advisory => {}
            SchemaError::Invalid(violations) => {
                faults.extend(violations.into_iter().map(|violation| violation.under(place)));
            }
            other => faults.push(Violation::new(place, other.to_string())),
        }
    };
    compile("/spec_schema", manifest.spec_schema.as_ref(), false);
    compile("/status_schema", manifest.status_schema.as_ref(), true);
    compile("/config_schema", manifest.config_schema.as_ref(), false);
}

fn pointers(manifest: &Manifest, faults: &mut Vec<Violation>) {
    let compare = manifest.compare.clone().unwrap_or_default();
    let columns: Vec<String> = manifest.printer_columns.iter().map(|column| column.pointer.clone()).collect();
    let lists: [(&str, &[String], &[&str]); 4] = [
        ("/compare/ignore", &compare.ignore, &["spec", "status"]),
        ("/compare/sets", &compare.sets, &["spec", "status"]),
        ("/immutable", &manifest.immutable, &["spec"]),
        (
            "/printer_columns",
            &columns,
            &[
                "spec",
                "status",
                "labels",
                "name",
                "kind",
                "kind_version",
                "phase",
                "generation",
                "synced_gen",
            ],
        ),
    ];
    for (place, list, roots) in lists {
        for (index, text) in list.iter().enumerate() {
            let message = match Pointer::parse(text) {
                Err(error) => error.to_string(),
                Ok(pointer) => match pointer.tokens().first() {
                    Some(first) if roots.contains(&first.as_str()) => continue,
                    _ => format!("must start with one of /{}", roots.join(", /")),
                },
            };
            let suffix = if place == "/printer_columns" { "/pointer" } else { "" };
            faults.push(Violation::new(format!("{place}/{index}{suffix}"), message));
        }
    }
    for (index, column) in manifest.printer_columns.iter().enumerate() {
        check_word(&format!("/printer_columns/{index}/name"), &column.name, faults);
    }
    if !manifest.sensitive.is_empty() {
        let message = "sensitive fields are not supported yet; a manifest that names them is refused, \
                       because their values would be stored and shown in clear";
        faults.push(Violation::new("/sensitive", message));
    }
}

fn policy(manifest: &Manifest, faults: &mut Vec<Violation>) {
    let knobs = &manifest.knobs;
    // Written so that NaN is out of range.
    if knobs.prune_share_max.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        faults.push(Violation::new("/prune_share_max", "must be between 0 and 1"));
    }
    let observes = manifest.reactions.iter().any(|reaction| match reaction.trigger {
        Trigger::Resync => true,
        Trigger::SpecChange => !composes(reaction) || knobs.resync_recomposes == Some(true),
        _ => false,
    });
    if knobs.resync_interval_secs.is_some_and(|secs| secs > 0) && !observes {
        let message = "there is nothing to run: the kind has no resync reaction, none that works, and no \
                       composer with `resync_recomposes`";
        faults.push(Violation::new("/resync_interval_secs", message));
    }
}

fn composes(reaction: &ReactionSpec) -> bool {
    reaction.trigger == Trigger::SpecChange && reaction.emits.contains(&Emit::Children)
}

fn at_most_one(
    manifest: &Manifest,
    what: &str,
    faults: &mut Vec<Violation>,
    is: impl Fn(&ReactionSpec) -> bool,
) {
    for (index, _) in manifest.reactions.iter().enumerate().filter(|(_, reaction)| is(reaction)).skip(1) {
        faults.push(Violation::new(format!("/reactions/{index}"), format!("a kind has at most one {what}")));
    }
}

fn check_word(place: &str, word: &str, faults: &mut Vec<Violation>) {
    let legal = !word.is_empty() && word.len() <= WORD_LENGTH_MAX && !word.chars().any(char::is_control);
    if !legal {
        let message = format!("must have 1 to {WORD_LENGTH_MAX} bytes and no control characters");
        faults.push(Violation::new(place, message));
    }
}
