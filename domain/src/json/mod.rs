//! JSON as this system understands it: values kept as written, compared by what they denote.

#[cfg(test)]
pub(crate) mod arbitrary;
mod equal;
pub mod faithful;
pub mod pointer;

pub use equal::equal;
pub use pointer::{Missing, Pointer, PointerError};

use serde_json::Value;

/// Deepest nesting of any JSON value the system stores, counted in containers.
///
/// Stored values are wrapped a few levels deeper in events, heads and task frames, and every reader of those
/// refuses text nested deeper than 127. A value at this limit is still readable inside all of its wrappings;
/// without the margin an accepted document could make its own stream undecodable.
pub const DEPTH_MAX: usize = 100;

/// How many containers are nested in `value`: 0 for a scalar, 1 for `[]` or `{"a": 1}`.
pub fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut pending = vec![(value, 0)];
    while let Some((value, above)) = pending.pop() {
        match value {
            Value::Array(items) => {
                deepest = deepest.max(above + 1);
                pending.extend(items.iter().map(|item| (item, above + 1)));
            }
            Value::Object(fields) => {
                deepest = deepest.max(above + 1);
                pending.extend(fields.values().map(|field| (field, above + 1)));
            }
            _ => {}
        }
    }
    deepest
}
