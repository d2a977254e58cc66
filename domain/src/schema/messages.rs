//! Validation errors in words users understand, bounded in length whatever the value.

use crate::json::pointer::escape;
use crate::violation::Violation;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

/// Longest text of a value inside a message, in characters.
const SHOWN_MAX: usize = 60;
/// Alternatives of `anyOf` and `oneOf` that a message explains.
const BRANCHES_MAX: usize = 4;

/// The faults of one error. A missing or unexpected property is a fault at its own place.
pub(super) fn violations(error: &ValidationError<'_>) -> Vec<Violation> {
    let place = error.instance_path().to_string();
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|name| unexpected_property(&place, name)).collect()
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![Violation::new(format!("{place}/{}", escape(name)), "is required")]
        }
        _ => vec![Violation::new(place, message(error))],
    }
}

/// The fault of a property that its object does not allow.
pub(super) fn unexpected_property(place: &str, name: &str) -> Violation {
    Violation::new(format!("{place}/{}", escape(name)), "is not a known field")
}

fn message(error: &ValidationError<'_>) -> String {
    let found = || shown(error.instance());
    match error.kind() {
        Kind::AdditionalItems { limit } => format!("must have at most {limit} elements"),
        Kind::AnyOf { context } => {
            format!("matches none of the allowed forms{}", branches(context))
        }
        Kind::OneOfNotValid { context } => {
            format!("matches none of the allowed forms{}", branches(context))
        }
        Kind::OneOfMultipleValid { .. } => {
            "matches more than one of the forms that exclude each other".to_owned()
        }
        Kind::Constant { expected_value } => {
            format!("must be {}, but is {}", shown(expected_value), found())
        }
        Kind::Contains => "has no element, or too few or many, of the required form".to_owned(),
        Kind::Custom { message, .. } => message.clone(),
        Kind::Enum { options } => {
            let allowed = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let words = allowed.iter().take(20).map(shown).collect::<Vec<_>>().join(", ");
            let more = if allowed.len() > 20 { ", …" } else { "" };
            format!("must be one of {words}{more}, but is {}", found())
        }
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}, but is {}", found()),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}, but is {}", found()),
        Kind::Maximum { limit } => format!("must be at most {limit}, but is {}", found()),
        Kind::Minimum { limit } => format!("must be at least {limit}, but is {}", found()),
        Kind::FalseSchema => "no value is allowed here".to_owned(),
        Kind::MaxItems { limit } => format!("must have at most {limit} elements"),
        Kind::MinItems { limit } => format!("must have at least {limit} elements"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} fields"),
        Kind::MinProperties { limit } => format!("must have at least {limit} fields"),
        Kind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}, but is {}", found())
        }
        Kind::Not { .. } => "has a form that is not allowed".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern `{pattern}`, but is {}", found()),
        Kind::PropertyNames { error } => format!("has a field whose name {}", message(error)),
        Kind::UniqueItems => "must not have equal elements".to_owned(),
        Kind::UnevaluatedItems { .. } => "has elements that are not allowed".to_owned(),
        _ => clipped(&error.to_string(), 4 * SHOWN_MAX),
    }
}

/// Why each alternative did not match, shortly.
fn branches(context: &[Vec<ValidationError<'static>>]) -> String {
    let reasons: Vec<String> = context
        .iter()
        .take(BRANCHES_MAX)
        .filter_map(|errors| violations(errors.first()?).first().map(Violation::to_string))
        .collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; or: ")) }
}

/// A value for a message: scalars as written, containers by type only.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("\"{}\"", clipped(text, SHOWN_MAX)),
        scalar => scalar.to_string(),
    }
}

fn clipped(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
