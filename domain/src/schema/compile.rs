//! From a manifest's schema to something that validates.

use super::{integers, messages, pending};
use crate::json::Pointer;
use crate::violation::Violation;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, Validator};
use serde_json::Value;
use std::sync::Arc;

/// Deepest nesting of a schema, in containers.
pub const DEPTH_MAX: usize = 64;
/// Most values (keywords, names, and their contents) in one schema.
pub const NODES_MAX: usize = 20_000;

/// Most faults reported for one value.
pub const VIOLATIONS_MAX: usize = 1000;

/// A schema ready to validate. Immutable; cloning shares it.
#[derive(Clone, Debug)]
pub struct CompiledSchema {
    validator: Arc<Validator>,
}

/// Why a schema cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SchemaError {
    /// Nested too deep or too large.
    #[error("the schema is larger than {NODES_MAX} values or nested deeper than {DEPTH_MAX} levels")]
    TooLarge,
    /// `$schema` names another draft.
    #[error("`$schema` is `{0}`, but only draft 2020-12 is understood")]
    OtherDraft(String),
    /// It breaks the rules for schemas; every place where.
    #[error("{}", list(.0))]
    Invalid(Vec<Violation>),
    /// A `$ref` that does not lead to a place in the schema itself. Nothing is ever fetched.
    #[error("{0}")]
    UnresolvableRef(String),
}

impl CompiledSchema {
    /// Compiles a schema, or says in one text why not.
    ///
    /// `format` is an annotation, as the draft has it. `integer` means what this system can keep as a 64-bit
    /// integer, so `42.0` is one and `1e300` is not.
    ///
    /// # Errors
    /// See [`SchemaError`], of which this is the text.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        Self::try_compile(schema).map_err(|error| error.to_string())
    }

    /// [`Self::compile`] for callers that tell the reasons apart.
    ///
    /// # Errors
    /// See [`SchemaError`].
    pub fn try_compile(schema: &Value) -> Result<Self, SchemaError> {
        if !within_bounds(schema) {
            return Err(SchemaError::TooLarge);
        }
        if let Some(draft) = schema.get("$schema") {
            let known = draft.as_str().is_some_and(|uri| {
                uri.trim_end_matches('#') == "https://json-schema.org/draft/2020-12/schema"
            });
            if !known {
                return Err(SchemaError::OtherDraft(messages::shown(draft)));
            }
        }
        let faults: Vec<_> = jsonschema::draft202012::meta::validator()
            .iter_errors(schema)
            .flat_map(|error| messages::violations(&error))
            .collect();
        if !faults.is_empty() {
            return Err(SchemaError::Invalid(faults));
        }
        let built = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .with_keyword("type", integers::type_keyword)
            .build(schema);
        match built {
            Ok(validator) => Ok(Self { validator: Arc::new(validator) }),
            Err(error) => Err(match error.kind() {
                ValidationErrorKind::Referencing(reason) => {
                    SchemaError::UnresolvableRef(format!("a $ref leads nowhere in this schema: {reason}"))
                }
                _ => SchemaError::Invalid(messages::violations(&error)),
            }),
        }
    }

    /// Every fault of `value` up to [`VIOLATIONS_MAX`], with pointers relative to it; empty when it is valid.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        // Most values are valid, and deciding that alone is several times cheaper than collecting errors.
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        let errors = self.validator.iter_errors(value);
        sorted(errors.flat_map(|error| messages::violations(&error)).take(VIOLATIONS_MAX).collect())
    }

    /// The faults of `value` that remain whatever will be put at the `pending` places.
    ///
    /// Lenient where a verdict depends on a value that is still to come (see `pending`): the effective value is
    /// checked in full, by [`Self::violations`], before it is used.
    pub fn violations_pending(&self, value: &Value, pending: &[Pointer]) -> Vec<Violation> {
        if pending.is_empty() {
            return self.violations(value);
        }
        // Judged with its containers even where it is valid without them: what a flow creates must be complete too.
        let laid_out = pending::with_containers(value, pending);
        if self.validator.is_valid(&laid_out) {
            return Vec::new();
        }
        let errors = self.validator.iter_errors(&laid_out);
        // Counted after the curable ones are gone: however many those are, they cannot hide a fault that remains.
        sorted(errors.flat_map(|error| pending::remaining(&error, pending)).take(VIOLATIONS_MAX).collect())
    }
}

/// In document order of pointers, without repeats: several keywords may find one fault.
fn sorted(mut violations: Vec<Violation>) -> Vec<Violation> {
    violations.sort_unstable();
    violations.dedup();
    violations
}

fn within_bounds(schema: &Value) -> bool {
    let mut nodes = 0;
    let mut open = vec![(schema, 0)];
    while let Some((value, depth)) = open.pop() {
        nodes += 1;
        if nodes > NODES_MAX || depth > DEPTH_MAX {
            return false;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    true
}

fn list(violations: &[Violation]) -> String {
    violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("; ")
}
