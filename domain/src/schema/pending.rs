//! Which faults a value still to come may cure.
//!
//! A composer declares children with holes that value flows fill later. Refusing the holes would refuse every such
//! child; ignoring everything would let typing errors through. So an error is dropped exactly when filling the
//! pending places could make it go away:
//!
//! * anything at or inside a pending place: its value will be replaced;
//! * a required property on the way to a pending place: it will be made;
//! * a verdict on a container *around* a pending place that looks at the container's content as a whole (`enum`,
//!   `const`, `not`, `contains`, `uniqueItems`, `minProperties`, the `unevaluated` keywords);
//! * `anyOf` and `oneOf`, when some alternative fails for curable reasons only; `oneOf` also when several match;
//! * anything under `then`, `else`: the condition may come out differently.
//!
//! Kept are errors no value there can cure: wrong types of containers on the way, unknown fields beside, missing
//! fields beside, too many elements. Dropping too much is safe (the full check runs on the effective value before
//! any use); keeping too much would refuse what is right. The rules above therefore lean to dropping.

use super::messages;
use crate::json::Pointer;
use crate::violation::Violation;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

/// A copy in which the containers around the pending places exist, as they will when the places are filled, so that
/// faults *beside* a pending place are found now.
pub(super) fn with_containers(value: &Value, pending: &[Pointer]) -> Value {
    let mut copy = value.clone();
    for container in pending.iter().filter_map(Pointer::parent) {
        if container.get(&copy).map_or(true, Value::is_null) {
            // Without a place for it the value itself is at fault, and validation says so.
            let _ = container.set(&mut copy, Value::Object(Map::new()));
        }
    }
    copy
}

/// What remains of an error.
pub(super) fn remaining(error: &ValidationError<'_>, pending: &[Pointer]) -> Vec<Violation> {
    if curable(error, pending) {
        return Vec::new();
    }
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let place = error.instance_path().to_string();
            let at = place_of(error);
            unexpected
                .iter()
                .filter(|name| !leads_to_pending(&at.child(name.as_str()), pending))
                .map(|name| messages::unexpected_property(&place, name))
                .collect()
        }
        _ => messages::violations(error),
    }
}

fn curable(error: &ValidationError<'_>, pending: &[Pointer]) -> bool {
    let at = place_of(error);
    if pending.iter().any(|target| target.contains(&at))
        || under_condition(&error.evaluation_path().to_string())
    {
        return true;
    }
    let around = leads_to_pending(&at, pending);
    match error.kind() {
        Kind::Required { property } => {
            property.as_str().is_some_and(|name| leads_to_pending(&at.child(name), pending))
        }
        Kind::AdditionalProperties { unexpected } => {
            unexpected.iter().all(|name| leads_to_pending(&at.child(name.as_str()), pending))
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            around
                && (context.is_empty()
                    || context.iter().any(|errors| errors.iter().all(|error| curable(error, pending))))
        }
        Kind::OneOfMultipleValid { .. }
        | Kind::Constant { .. }
        | Kind::Enum { .. }
        | Kind::Contains
        | Kind::MinProperties { .. }
        | Kind::Not { .. }
        | Kind::UniqueItems
        | Kind::UnevaluatedItems { .. }
        | Kind::UnevaluatedProperties { .. } => around,
        _ => false,
    }
}

/// Whether filling the pending places changes something at or inside `at`.
fn leads_to_pending(at: &Pointer, pending: &[Pointer]) -> bool {
    pending.iter().any(|target| at.contains(target))
}

fn place_of(error: &ValidationError<'_>) -> Pointer {
    // The validator renders the paths of a value within our depth; one beyond it is no pending place.
    Pointer::parse(&error.instance_path().to_string()).unwrap_or_default()
}

/// Whether the way through the schema passes a conditional branch. Names of properties are steps of the way too,
/// so only steps where a keyword can stand count.
fn under_condition(evaluation_path: &str) -> bool {
    let mut steps = evaluation_path.split('/').skip(1);
    while let Some(step) = steps.next() {
        match step {
            "then" | "else" => return true,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                steps.next();
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_named_like_a_conditional_is_none() {
        assert!(under_condition("/allOf/0/then/required"));
        assert!(under_condition("/properties/a/else"));
        assert!(!under_condition("/properties/then/type"));
        assert!(!under_condition("/if/type"));
    }
}
