//! Reading an object field by field, keeping every fault.
//!
//! A derived deserializer stops at the first fault and names no pointer. Here a reader asks for the fields it
//! knows, each answer is checked on its own, and what nobody asked for is an unknown field, reported with the
//! nearest name that was asked for.

use crate::json::pointer::escape;
use crate::violation::Violation;
use serde_json::{Map, Value};

/// Names less alike than this are not offered as what was meant.
const ALIKE_MIN: f64 = 0.7;

/// An object being read.
pub(crate) struct Fields<'f> {
    place: String,
    fields: Map<String, Value>,
    asked: Vec<&'static str>,
    faults: &'f mut Vec<Violation>,
}

impl<'f> Fields<'f> {
    /// Begins reading the object at `place`; None when it is no object.
    pub(crate) fn open(value: Value, place: &str, faults: &'f mut Vec<Violation>) -> Option<Self> {
        match value {
            Value::Object(fields) => {
                Some(Self { place: place.to_owned(), fields, asked: Vec::new(), faults })
            }
            other => {
                faults.push(Violation::new(place, format!("must be an object, but is {}", type_of(&other))));
                None
            }
        }
    }

    /// The field as it is. Absent is None, null is null.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Value> {
        self.asked.push(name);
        self.fields.remove(name)
    }

    /// A field that may be left out; null counts as left out.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.take(name).filter(|value| !value.is_null())?;
        match read(value) {
            Ok(read) => Some(read),
            Err(message) => {
                self.fault(name, message);
                None
            }
        }
    }

    /// A field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value) -> Result<T, String>,
    ) -> Option<T> {
        if self.fields.get(name).is_none_or(Value::is_null) {
            self.take(name);
            self.fault(name, "is required");
            return None;
        }
        self.optional(name, read)
    }

    /// A field that is a list of objects, each read by `read` at its own place. Absent is empty.
    pub(crate) fn objects<T>(
        &mut self,
        name: &'static str,
        count_max: usize,
        mut read: impl FnMut(Value, &str, &mut Vec<Violation>) -> Option<T>,
    ) -> Vec<T> {
        let Some(items) = self.optional(name, list) else {
            return Vec::new();
        };
        if items.len() > count_max {
            self.fault(name, format!("has {} elements, at most {count_max} are accepted", items.len()));
            return Vec::new();
        }
        let place = self.at(name);
        let faults = &mut *self.faults;
        items
            .into_iter()
            .enumerate()
            .filter_map(|(index, item)| read(item, &format!("{place}/{index}"), faults))
            .collect()
    }

    /// A field that is an object, read by `read`.
    pub(crate) fn object<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value, &str, &mut Vec<Violation>) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(name).filter(|value| !value.is_null())?;
        read(value, &self.at(name), self.faults)
    }

    /// Whether a fault at or inside a field is recorded.
    pub(crate) fn has_fault(&self, name: &str) -> bool {
        let place = self.at(name);
        self.faults.iter().any(|fault| {
            fault.pointer.strip_prefix(&place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Records a fault of a field.
    pub(crate) fn fault(&mut self, name: &str, message: impl Into<String>) {
        let place = self.at(name);
        self.faults.push(Violation::new(place, message));
    }

    /// Records faults found in the object as a whole; their pointers are relative to it.
    pub(crate) fn faults(&mut self, found: Vec<Violation>) {
        let place = &self.place;
        self.faults.extend(found.into_iter().map(|violation| violation.under(place)));
    }

    /// Reports what nobody asked for.
    pub(crate) fn finish(self) {
        for name in self.fields.keys() {
            let message = match nearest(name, self.asked.iter().copied()) {
                Some(known) => format!("is not a known field; did you mean `{known}`?"),
                None => format!("is not a known field; known are {}", self.asked.join(", ")),
            };
            self.faults.push(Violation::new(format!("{}/{}", self.place, escape(name)), message));
        }
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{}", self.place, escape(name))
    }
}

/// The known word most like `word`, if one is like it at all.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word.to_lowercase(), candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// One of a closed set of words.
pub(crate) fn word(value: Value, known: &[&'static str]) -> Result<&'static str, String> {
    let text = string(value)?;
    known.iter().find(|candidate| **candidate == text).copied().ok_or_else(|| {
        let hint = nearest(&text, known.iter().copied())
            .map_or_else(String::new, |known| format!("; did you mean `{known}`?"));
        format!("`{}` is not one of {}{hint}", clip(&text), known.join(", "))
    })
}

/// A word that one of serde's enums knows, which stays the only place where its words are written.
pub(crate) fn variant<T: serde::de::DeserializeOwned>(
    value: Value,
    known: &[&'static str],
) -> Result<T, String> {
    let word = word(value, known)?;
    serde_json::from_value(Value::from(word)).map_err(|error| error.to_string())
}

pub(crate) fn string(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("must be a string, but is {}", type_of(&other))),
    }
}

pub(crate) fn boolean(value: Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("must be true or false, but is {}", type_of(&value)))
}

pub(crate) fn list(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(format!("must be a list, but is {}", type_of(&other))),
    }
}

/// A list of strings.
pub(crate) fn strings(value: Value) -> Result<Vec<String>, String> {
    list(value)?
        .into_iter()
        .enumerate()
        .map(|(index, item)| string(item).map_err(|message| format!("element {index} {message}")))
        .collect()
}

/// A whole number from 0 on, in whatever notation (`3.0` is 3).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the guard leaves whole numbers between 0 and 2^53, which the cast keeps"
)]
pub(crate) fn whole_number(value: Value) -> Result<u64, String> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match &value {
        Value::Number(number) => number
            .as_u64()
            .or_else(|| {
                let double = number.as_f64()?;
                (double.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&double)).then_some(double as u64)
            })
            .ok_or_else(|| format!("must be a whole number from 0 on, but is {number}")),
        other => Err(format!("must be a whole number, but is {}", type_of(other))),
    }
}

/// A whole number that fits 32 bits.
pub(crate) fn small_number(value: Value) -> Result<u32, String> {
    let number = whole_number(value)?;
    u32::try_from(number).map_err(|_| format!("must be at most {}, but is {number}", u32::MAX))
}

pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A user's text cut to what a message may carry.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
