//! Reads any tree strictly: no key twice, no key that is not a string, every error with its place.
//!
//! JSON and YAML readers alike keep the last of two equal keys, which is never what their author meant.

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

/// A tree that JSON can say, with numbers as text.
#[derive(Clone, PartialEq, Debug)]
pub enum Tree {
    Null,
    Bool(bool),
    /// JSON text of a number.
    Number(String),
    /// A number whose text is not known yet: the reader rounds it to a double before we see it.
    Double(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// Reads a tree; `deserializer` must be self-describing.
///
/// # Errors
/// The reader's own, and those of this module's rules.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
    Node { path: &RefCell::new(String::new()) }.deserialize(deserializer)
}

/// A place in the tree; `path` is the JSON Pointer of what is being read.
#[derive(Clone, Copy)]
struct Node<'p> {
    path: &'p RefCell<String>,
}

impl<'p> Node<'p> {
    /// Reads one level further down and comes back, also after an error.
    fn below<T>(self, step: &str, read: impl FnOnce(Self) -> T) -> T {
        let depth = self.path.borrow().len();
        self.path.borrow_mut().push_str(&format!("/{}", step.replace('~', "~0").replace('/', "~1")));
        let result = read(self);
        self.path.borrow_mut().truncate(depth);
        result
    }

    /// ` at /spec/x`, or nothing for the whole document.
    fn place(self) -> String {
        let path = self.path.borrow();
        if path.is_empty() { String::new() } else { format!(" at {path}") }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can hold")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        if value.is_finite() {
            Ok(Tree::Double(value))
        } else {
            Err(E::custom(format!("a number that JSON cannot hold{}", self.place())))
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = self.below(&list.len().to_string(), |node| items.next_element_seed(node))? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        let mut seen = HashSet::new();
        while let Some(key) = fields.next_key_seed(Key(self))? {
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key `{key}` is there twice{}", self.place())));
            }
            let value = self.below(&key, |node| fields.next_value_seed(node))?;
            map.push((key, value));
        }
        Ok(Tree::Map(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Tree, A::Error> {
        Err(A::Error::custom(format!("a YAML tag{}; JSON has none", self.place())))
    }
}

/// A key, which must be a string as it stands: `1:` and `true:` would each become a string that somebody
/// has to guess.
struct Key<'p>(Node<'p>);

impl Key<'_> {
    fn refuse<E: Error>(&self, key: impl fmt::Display) -> E {
        E::custom(format!("the key {key}{} is not a string; put it in quotes", self.0.place()))
    }
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Key<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string as key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<String, E> {
        Ok(key.to_owned())
    }

    fn visit_unit<E: Error>(self) -> Result<String, E> {
        Err(self.refuse("null"))
    }

    fn visit_bool<E: Error>(self, key: bool) -> Result<String, E> {
        Err(self.refuse(key))
    }

    fn visit_u64<E: Error>(self, key: u64) -> Result<String, E> {
        Err(self.refuse(key))
    }

    fn visit_i64<E: Error>(self, key: i64) -> Result<String, E> {
        Err(self.refuse(key))
    }

    fn visit_f64<E: Error>(self, key: f64) -> Result<String, E> {
        Err(self.refuse(key))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<String, A::Error> {
        Err(self.refuse("[…]"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<String, A::Error> {
        Err(self.refuse("{…}"))
    }
}
