//! Additive changes of a schema.
//!
//! Accepted, and nothing else: changed annotations anywhere, and a new optional property in an object that allowed
//! no unknown ones. The latter only widens what that object accepts. Widening a part widens the whole as long as
//! every keyword on the way is monotone (`properties`, `items`, `allOf` and the like, but not `not`, `if` or
//! `oneOf`), and as long as no reference leads to the part from somewhere else, where it may not be.

use crate::json::{self, pointer::escape};
use serde_json::{Map, Value};

/// Keywords that only inform. `default` and `format` are not among them: handlers may act on both.
const ANNOTATIONS: [&str; 5] = ["title", "description", "examples", "$comment", "deprecated"];

/// Keywords that hold schemas, and whether widening one widens the schema around it.
fn subschemas(keyword: &str) -> Option<(Holds, bool)> {
    Some(match keyword {
        "properties" | "patternProperties" => (Holds::Map, true),
        "$defs" | "definitions" | "dependentSchemas" => (Holds::Map, false),
        "items" | "additionalProperties" => (Holds::One, true),
        "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => (Holds::One, false),
        "allOf" | "prefixItems" => (Holds::List, true),
        "anyOf" | "oneOf" => (Holds::List, false),
        _ => return None,
    })
}

#[derive(Clone, Copy)]
enum Holds {
    One,
    Map,
    List,
}

/// Adds a sentence for every change that is not additive.
pub(super) fn breaking(name: &str, old: Option<&Value>, new: Option<&Value>, changes: &mut Vec<String>) {
    match (old, new) {
        (None, None) => {}
        (None, Some(_)) => changes.push(format!("{name} is added where anything was valid")),
        (Some(_), None) => changes.push(format!("{name} is removed")),
        (Some(old), Some(new)) => {
            let widening = !reaches_into_itself(old) && !reaches_into_itself(new);
            compare(&format!("{name}#"), old, new, widening, changes);
        }
    }
}

/// Recursion is bounded: published schemas are within `schema::DEPTH_MAX`.
fn compare(place: &str, old: &Value, new: &Value, widening: bool, changes: &mut Vec<String>) {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        if !json::equal(old, new) {
            changes.push(format!("{place} changes"));
        }
        return;
    };
    let keywords = before.keys().chain(after.keys().filter(|keyword| !before.contains_key(*keyword)));
    for keyword in keywords.filter(|keyword| !ANNOTATIONS.contains(&keyword.as_str())) {
        let at = format!("{place}/{}", escape(keyword));
        match (keyword.as_str(), before.get(keyword), after.get(keyword)) {
            ("properties", old, new) => properties(&at, (before, old), (after, new), widening, changes),
            ("required", Some(old), Some(new)) if same_set(old, new) => {}
            (_, Some(old), Some(new)) => match subschemas(keyword) {
                None if json::equal(old, new) => {}
                None => changes.push(format!("{at} changes")),
                Some((holds, monotone)) => held(&at, old, new, holds, widening && monotone, changes),
            },
            (_, Some(_), None) => changes.push(format!("{at} is removed")),
            (_, None, _) => changes.push(format!("{at} is added")),
        }
    }
}

fn held(at: &str, old: &Value, new: &Value, holds: Holds, widening: bool, changes: &mut Vec<String>) {
    match (holds, old, new) {
        (Holds::Map, Value::Object(old), Value::Object(new)) => {
            for (name, schema) in old {
                match new.get(name) {
                    Some(other) => {
                        compare(&format!("{at}/{}", escape(name)), schema, other, widening, changes)
                    }
                    None => changes.push(format!("{at}/{} is removed", escape(name))),
                }
            }
            for name in new.keys().filter(|name| !old.contains_key(*name)) {
                changes.push(format!("{at}/{} is added", escape(name)));
            }
        }
        (Holds::List, Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{at}/{index}"), old, new, widening, changes);
            }
        }
        (Holds::List, ..) => changes.push(format!("{at} changes")),
        _ => compare(at, old, new, widening, changes),
    }
}

/// `properties` may grow where unknown properties were refused.
fn properties(
    at: &str,
    (old_schema, old): (&Map<String, Value>, Option<&Value>),
    (new_schema, new): (&Map<String, Value>, Option<&Value>),
    widening: bool,
    changes: &mut Vec<String>,
) {
    let empty = Map::new();
    let fields = |value: Option<&'_ Value>| value.and_then(Value::as_object).cloned();
    let (before, after) = (fields(old).unwrap_or_else(|| empty.clone()), fields(new).unwrap_or(empty));
    for (name, schema) in &before {
        match after.get(name) {
            Some(other) => compare(&format!("{at}/{}", escape(name)), schema, other, widening, changes),
            None => changes.push(format!("{at}/{} is removed", escape(name))),
        }
    }
    // With patterns a new name may have been governed by one, and then been accepted under its schema.
    let was_closed = old_schema.get("additionalProperties") == Some(&Value::Bool(false))
        && !old_schema.contains_key("patternProperties");
    let required = new_schema.get("required").and_then(Value::as_array);
    for name in after.keys().filter(|name| !before.contains_key(*name)) {
        let at = format!("{at}/{}", escape(name));
        if required.is_some_and(|names| names.iter().any(|required| required == name.as_str())) {
            changes.push(format!("{at} is added and required"));
        } else if !was_closed {
            changes.push(format!("{at} is added where any value was valid"));
        } else if !widening {
            changes.push(format!("{at} is added in a place whose widening may narrow the whole"));
        }
    }
}

fn same_set(a: &Value, b: &Value) -> bool {
    let names = |value: &Value| {
        value.as_array().map(|names| {
            let mut names: Vec<_> = names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            names.sort_unstable();
            names.dedup();
            names
        })
    };
    names(a).is_some() && names(a) == names(b)
}

/// Whether some reference may lead to a place outside `$defs`. Looks at every object, also at data that merely looks
/// like a reference: too cautious there, which is allowed.
fn reaches_into_itself(schema: &Value) -> bool {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                for (keyword, value) in fields {
                    let reaches = match keyword.as_str() {
                        "$ref" => !value
                            .as_str()
                            .is_some_and(|to| to.starts_with("#/$defs/") || to.starts_with("#/definitions/")),
                        "$dynamicRef" | "$anchor" | "$dynamicAnchor" | "$id" => true,
                        _ => false,
                    };
                    if reaches {
                        return true;
                    }
                    open.push(value);
                }
            }
            _ => {}
        }
    }
    false
}
