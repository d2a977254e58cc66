//! RFC 6901 pointers, parsed once and used many times.

use serde_json::{Map, Value};
use std::fmt;

/// Longest pointer text accepted, in bytes.
const LENGTH_MAX: usize = 4096;

/// A parsed pointer: the path from a value's root to a place in it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Pointer {
    tokens: Vec<String>,
}

/// Text that is not a pointer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PointerError {
    #[error("a pointer is empty or starts with `/`")]
    NotRooted,
    #[error("`~` must be followed by `0` or `1` in a pointer")]
    BadEscape,
    #[error("a pointer has at most {LENGTH_MAX} bytes and {} steps", super::DEPTH_MAX)]
    TooLong,
}

/// Why there is no value at a pointer, or no place to put one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Missing {
    /// A clause that names the step that failed.
    pub reason: String,
}

impl Pointer {
    /// The pointer to the whole value.
    pub const fn root() -> Self {
        Self { tokens: Vec::new() }
    }

    /// Reads a pointer.
    ///
    /// # Errors
    /// When the text is not RFC 6901 or beyond the stated bounds.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        if text.len() > LENGTH_MAX {
            return Err(PointerError::TooLong);
        }
        if text.is_empty() {
            return Ok(Self::root());
        }
        let steps = text.strip_prefix('/').ok_or(PointerError::NotRooted)?;
        let tokens = steps.split('/').map(unescape).collect::<Result<Vec<_>, _>>()?;
        if tokens.len() > super::DEPTH_MAX {
            return Err(PointerError::TooLong);
        }
        Ok(Self { tokens })
    }

    /// The steps, unescaped.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Whether it is the pointer to the whole value.
    pub fn is_root(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The place one step further in.
    #[must_use]
    pub fn child(&self, token: impl Into<String>) -> Self {
        let mut tokens = self.tokens.clone();
        tokens.push(token.into());
        Self { tokens }
    }

    /// The place one step further out; None for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, tokens) = self.tokens.split_last()?;
        Some(Self { tokens: tokens.to_vec() })
    }

    /// Whether `other` is this place or lies inside it.
    pub fn contains(&self, other: &Self) -> bool {
        other.tokens.starts_with(&self.tokens)
    }

    /// The value at this place.
    ///
    /// # Errors
    /// The step at which the path ends; `-` and indexes out of range among them.
    pub fn get<'a>(&self, value: &'a Value) -> Result<&'a Value, Missing> {
        let mut at = value;
        for (depth, token) in self.tokens.iter().enumerate() {
            at = match at {
                Value::Object(fields) => fields
                    .get(token)
                    .ok_or_else(|| self.missing(depth, format_args!("has no field `{token}`")))?,
                Value::Array(items) => {
                    let index = self.index(depth, token, items.len())?;
                    // In range: `index` checked it against this length.
                    &items[index]
                }
                scalar => {
                    let what = format_args!("is {}, which has no `{token}`", describe(scalar));
                    return Err(self.missing(depth, what));
                }
            };
        }
        Ok(at)
    }

    /// Puts `new` at this place. Absent and null containers on the way become objects; an array is never
    /// lengthened, and a scalar on the way is never replaced.
    ///
    /// # Errors
    /// The step at which there is no place for it; `value` is then unchanged.
    pub fn set(&self, value: &mut Value, new: Value) -> Result<(), Missing> {
        // Containers are only ever created below a point where nothing can fail any more (inside a new object
        // every further step succeeds), so an error leaves the value as it was.
        let mut at = value;
        for (depth, token) in self.tokens.iter().enumerate() {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            at = match at {
                Value::Object(fields) => fields.entry(token.as_str()).or_insert(Value::Null),
                Value::Array(items) => {
                    let index = self.index(depth, token, items.len())?;
                    &mut items[index]
                }
                scalar => {
                    let what = format_args!("is {}, which cannot hold `{token}`", describe(scalar));
                    return Err(self.missing(depth, what));
                }
            };
        }
        *at = new;
        Ok(())
    }

    fn index(&self, depth: usize, token: &str, len: usize) -> Result<usize, Missing> {
        if token == "-" {
            let what = "is an array, in which `-` names the element after the last, which never exists";
            return Err(self.missing(depth, format_args!("{what}")));
        }
        let canonical = token == "0"
            || (!token.is_empty() && !token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()));
        if !canonical {
            return Err(self.missing(depth, format_args!("is an array, and `{token}` is not an index")));
        }
        // An index too large for the machine is out of range of any array.
        token.parse().ok().filter(|index| *index < len).ok_or_else(|| {
            self.missing(depth, format_args!("is an array of {len}, and index {token} is out of range"))
        })
    }

    fn missing(&self, depth: usize, what: fmt::Arguments<'_>) -> Missing {
        let place = if depth == 0 {
            "the whole value".to_owned()
        } else {
            format!("`{}`", Self { tokens: self.tokens[..depth].to_vec() })
        };
        Missing { reason: format!("{place} {what}") }
    }
}

/// Whether writing to one place could change what is at the other: one contains the other.
pub fn overlaps(a: &Pointer, b: &Pointer) -> bool {
    a.contains(b) || b.contains(a)
}

/// A step as it is written inside a pointer, with `~` and `/` escaped.
pub fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

fn unescape(step: &str) -> Result<String, PointerError> {
    let mut token = String::with_capacity(step.len());
    let mut chars = step.chars();
    while let Some(c) = chars.next() {
        token.push(match c {
            '~' => match chars.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return Err(PointerError::BadEscape),
            },
            c => c,
        });
    }
    Ok(token)
}

fn describe(scalar: &Value) -> &'static str {
    match scalar {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for token in &self.tokens {
            write!(f, "/{}", escape(token))?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::arbitrary::{json, key};
    use proptest::prelude::*;
    use serde_json::json;

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    #[test]
    fn odd_keys_are_reached_exactly() {
        let value = json!({"a/b": 1, "m~n": 2, "~1": 3, "": {"": 4}, "日本": 5, "0": 6, "list": [7]});
        for (text, expected) in
            [("/a~1b", 1), ("/m~0n", 2), ("/~01", 3), ("//", 4), ("/日本", 5), ("/0", 6), ("/list/0", 7)]
        {
            assert_eq!(at(text).get(&value), Ok(&json!(expected)), "{text}");
        }
        assert_eq!(at("").get(&value), Ok(&value));
    }

    #[test]
    fn a_path_that_ends_early_says_where_and_why() {
        let value = json!({"list": [1], "text": "x"});
        let reason = |text: &str| at(text).get(&value).unwrap_err().reason;
        assert_eq!(reason("/a"), "the whole value has no field `a`");
        assert_eq!(reason("/list/1"), "`/list` is an array of 1, and index 1 is out of range");
        assert_eq!(
            reason("/list/99999999999999999999999"),
            "`/list` is an array of 1, and index 99999999999999999999999 is out of range"
        );
        assert_eq!(reason("/list/01"), "`/list` is an array, and `01` is not an index");
        assert_eq!(reason("/list/"), "`/list` is an array, and `` is not an index");
        assert!(reason("/list/-").contains("after the last"));
        assert_eq!(reason("/text/a"), "`/text` is a string, which has no `a`");
    }

    #[test]
    fn setting_creates_objects_on_the_way_but_never_lengthens_an_array() {
        let mut value = json!(null);
        at("/a/0/b").set(&mut value, json!(1)).unwrap();
        assert_eq!(value, json!({"a": {"0": {"b": 1}}}));

        let mut value = json!({"list": [{"x": 1}], "text": "x"});
        at("/list/0/y").set(&mut value, json!(2)).unwrap();
        assert_eq!(value, json!({"list": [{"x": 1, "y": 2}], "text": "x"}));
        let before = value.clone();
        for text in ["/list/1", "/list/-", "/text/a/b"] {
            at(text).set(&mut value, json!(0)).unwrap_err();
            assert_eq!(value, before, "{text}");
        }
    }

    #[test]
    fn text_that_is_no_pointer_is_refused() {
        assert_eq!(Pointer::parse("a"), Err(PointerError::NotRooted));
        assert_eq!(Pointer::parse("/~"), Err(PointerError::BadEscape));
        assert_eq!(Pointer::parse("/~2"), Err(PointerError::BadEscape));
        assert_eq!(Pointer::parse(&"/".repeat(101)), Err(PointerError::TooLong));
        assert_eq!(Pointer::parse(&format!("/{}", "a".repeat(4096))), Err(PointerError::TooLong));
    }

    #[test]
    fn places_overlap_when_one_contains_the_other() {
        assert!(overlaps(&at("/a"), &at("/a/b")));
        assert!(overlaps(&at("/a"), &at("/a")));
        assert!(overlaps(&at(""), &at("/a")));
        assert!(!overlaps(&at("/a"), &at("/ab")));
        assert!(!overlaps(&at("/a/b"), &at("/a/c")));
    }

    proptest! {
        #[test]
        fn a_pointer_reads_back_as_written(tokens in prop::collection::vec(key(), 0..6)) {
            let pointer = Pointer { tokens };
            prop_assert_eq!(Pointer::parse(&pointer.to_string()), Ok(pointer));
        }

        #[test]
        fn what_was_set_is_what_is_got(
            mut value in json(), new in json(), tokens in prop::collection::vec(key(), 0..4)
        ) {
            let pointer = Pointer { tokens };
            let before = value.clone();
            match pointer.set(&mut value, new.clone()) {
                Ok(()) => prop_assert_eq!(pointer.get(&value), Ok(&new)),
                Err(_) => prop_assert_eq!(value, before),
            }
        }
    }
}
