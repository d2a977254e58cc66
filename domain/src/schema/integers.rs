//! The keyword `type`, with an `integer` that is one.
//!
//! The draft calls every number without a fraction an integer, `1e300` among them. No program that reads such a
//! field into an integer could hold it, so here an integer is what fits 64 bits, signed or unsigned.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Number, Value};

struct Types {
    allowed: Vec<String>,
}

/// Makes the keyword for `jsonschema`.
pub(super) fn type_keyword<'a>(
    _schema: &'a Map<String, Value>,
    value: &'a Value,
    _place: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let words = match value {
        Value::Array(words) => words.iter().collect(),
        word => vec![word],
    };
    let allowed = words
        .into_iter()
        .map(|word| word.as_str().map(str::to_owned))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| ValidationError::custom("`type` is a word or a list of words"))?;
    Ok(Box::new(Types { allowed }))
}

impl<'i> Keyword<'i> for Types {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        let expected = self.allowed.iter().map(|word| with_article(word)).collect::<Vec<_>>().join(" or ");
        let found = super::messages::shown(instance);
        let hint = match instance {
            Value::Number(n) if self.allowed.iter().any(|w| w == "integer") && !is_integer(n) => {
                " (it has a fraction or does not fit 64 bits)"
            }
            _ => "",
        };
        Err(ValidationError::custom(format!("must be {expected}, but is {found}{hint}")))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.allowed.iter().any(|word| is_a(instance, word))
    }
}

fn is_a(value: &Value, word: &str) -> bool {
    match (word, value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => is_integer(number),
        _ => false,
    }
}

/// Whether the number is a 64-bit integer, signed or unsigned, in whatever notation.
fn is_integer(number: &Number) -> bool {
    const BELOW: f64 = -9_223_372_036_854_775_808.0;
    const ABOVE: f64 = 18_446_744_073_709_551_616.0;
    number.is_u64()
        || number.is_i64()
        || number.as_f64().is_some_and(|n| n.fract() == 0.0 && (BELOW..ABOVE).contains(&n))
}

fn with_article(word: &str) -> String {
    match word {
        "null" => word.to_owned(),
        "integer" | "array" | "object" => format!("an {word}"),
        _ => format!("a {word}"),
    }
}
