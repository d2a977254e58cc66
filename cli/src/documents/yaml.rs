//! YAML documents, converted to JSON with nothing guessed and no digit lost.
//!
//! The YAML reader rounds `0.1234567890123456789` to a double before anyone sees its text, and then the
//! server could not refuse it as it refuses it in JSON. So a document with such numbers is read twice:
//! the first reading tells where they are, the second asks for the text at exactly those places.

use super::strict::{self, Tree};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The documents of a YAML text; empty ones (two `---` in a row) are skipped.
///
/// # Errors
/// For what is not YAML, what is not a mapping, keys that are not strings or there twice, tags, and
/// numbers that JSON does not have.
pub fn documents(text: &str) -> Result<Vec<Box<RawValue>>, String> {
    let mut documents = Vec::new();
    // To the reader, a stream with nothing in it is a document that breaks off.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(documents);
    }
    let again = serde_yaml_ng::Deserializer::from_str(text);
    for (first, second) in serde_yaml_ng::Deserializer::from_str(text).zip(again) {
        let mut tree = strict::read(first).map_err(|error| error.to_string())?;
        match tree {
            Tree::Null => continue,
            Tree::Map(_) => {}
            _ => return Err("a document must be a mapping".to_owned()),
        }
        if has_doubles(&tree) {
            Texts(&mut tree).deserialize(second).map_err(|error| error.to_string())?;
        }
        let mut json = String::new();
        write(&tree, &mut json);
        documents.push(RawValue::from_string(json).map_err(|error| error.to_string())?);
    }
    Ok(documents)
}

fn has_doubles(tree: &Tree) -> bool {
    match tree {
        Tree::Double(_) => true,
        Tree::List(items) => items.iter().any(has_doubles),
        Tree::Map(fields) => fields.iter().any(|(_, value)| has_doubles(value)),
        _ => false,
    }
}

fn write(tree: &Tree, json: &mut String) {
    match tree {
        Tree::Null => json.push_str("null"),
        Tree::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
        Tree::Number(text) => json.push_str(text),
        Tree::Double(value) => json.push_str(&serde_json::Value::from(*value).to_string()),
        Tree::Text(text) => json.push_str(&serde_json::Value::from(text.as_str()).to_string()),
        Tree::List(items) => {
            for (index, item) in items.iter().enumerate() {
                json.push(if index == 0 { '[' } else { ',' });
                write(item, json);
            }
            json.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Tree::Map(fields) => {
            for (index, (key, value)) in fields.iter().enumerate() {
                json.push(if index == 0 { '{' } else { ',' });
                json.push_str(&serde_json::Value::from(key.as_str()).to_string());
                json.push(':');
                write(value, json);
            }
            json.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
    }
}

/// JSON's way to write the number that YAML wrote as `text`; None where YAML's grammar has no JSON twin.
fn number(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lead = if digits.starts_with('.') { "0" } else { "" };
    let written = format!("{sign}{lead}{}", digits.replace(".e", ".0e").replace(".E", ".0E"));
    let written = if written.ends_with('.') { written + "0" } else { written };
    serde_json::from_str::<&RawValue>(&written).is_ok().then_some(written)
}

/// Walks a document beside the tree of its first reading, and puts texts where doubles were.
struct Texts<'t>(&'t mut Tree);

impl<'de> DeserializeSeed<'de> for Texts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0 {
            Tree::Double(_) => deserializer.deserialize_str(self),
            Tree::List(_) => deserializer.deserialize_seq(self),
            Tree::Map(_) => deserializer.deserialize_map(self),
            _ => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
        }
    }
}

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the document as it was a moment ago")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if let Some(number) = number(text) {
            *self.0 = Tree::Number(number);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if let Tree::List(list) = self.0 {
            for item in list {
                items.next_element_seed(Texts(item))?;
            }
        }
        // The end of the list must be read for the reader to go on behind it.
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        if let Tree::Map(map) = self.0 {
            for (_, value) in map {
                fields.next_key::<IgnoredAny>()?;
                fields.next_value_seed(Texts(value))?;
            }
        }
        while fields.next_key::<IgnoredAny>()?.is_some() {
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(yaml: &str) -> Vec<String> {
        documents(yaml).unwrap().iter().map(|raw| raw.get().to_owned()).collect()
    }

    #[test]
    fn a_file_holds_several_documents_and_empty_ones_do_not_count() {
        assert_eq!(
            converted("---\na: 1\n---\n---\nb: [x, {y: null}]\n"),
            [r#"{"a":1}"#, r#"{"b":["x",{"y":null}]}"#]
        );
    }

    #[test]
    fn comments_alone_are_no_document() {
        assert!(documents("").unwrap().is_empty() && documents("# later\n\n  # more").unwrap().is_empty());
    }

    #[test]
    fn numbers_reach_the_server_with_every_digit() {
        let yaml = "a: 1.10\nb: 0.12345678901234567890\nc: 18446744073709551615\nd: 99999999999999999999\n\
                    e: .5\nf: +1.5\ng: 1e3\nh: -2.\ni: 0x1F\nj: '1.10'\nk: [1.50, {l: 2.0}]\nm: &x 7.70\nn: *x\n";
        assert_eq!(
            converted(yaml),
            [concat!(
                r#"{"a":1.10,"b":0.12345678901234567890,"c":18446744073709551615,"d":99999999999999999999,"#,
                r#""e":0.5,"f":1.5,"g":1e3,"h":-2.0,"i":31,"j":"1.10","k":[1.50,{"l":2.0}],"m":7.70,"n":7.70}"#
            )]
        );
    }

    #[test]
    fn five_kinds_of_nothing_stay_five() {
        assert_eq!(converted("a: {}\nb: []\nc:\nd: ''\n"), [r#"{"a":{},"b":[],"c":null,"d":""}"#]);
    }

    #[test]
    fn what_json_cannot_say_is_refused_with_its_place() {
        let refused = |yaml: &str| documents(yaml).unwrap_err();
        assert!(refused("spec: {a: 1, a: 2}").contains("the key `a` is there twice at /spec"));
        assert!(refused("spec:\n  1: x").contains("the key 1 at /spec is not a string; put it in quotes"));
        assert!(refused("true: x").contains("the key true is not a string"));
        assert!(refused("? [a]\n: x").contains("is not a string"));
        assert!(refused("a: .inf").contains("JSON cannot hold at /a"));
        assert!(refused("a: !secret x").contains("a YAML tag at /a"));
        assert!(refused("- a").contains("must be a mapping"));
        assert!(refused("a: [").contains("line"));
    }
}
