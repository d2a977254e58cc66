//! Pieces that several documents and composer output share.

use super::fields::{Fields, string, type_of, whole_number};
use super::names;
use crate::ids::ResourceRef;
use crate::json::{Pointer, pointer::escape};
use crate::resource::FieldFlow;
use crate::violation::Violation;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most value flows on one edge.
const FLOWS_MAX: usize = 1000;

pub(crate) fn name(value: Value) -> Result<String, String> {
    let name = string(value)?;
    names::check_name(&name).map(|()| name)
}

pub(crate) fn kind(value: Value) -> Result<String, String> {
    let kind = string(value)?;
    names::check_kind(&kind).map(|()| kind)
}

pub(crate) fn kind_version(value: Value) -> Result<u16, String> {
    names::check_kind_version(whole_number(value)?)
}

/// Labels as users and composers may set them.
pub(crate) fn labels(
    value: Value,
    place: &str,
    faults: &mut Vec<Violation>,
) -> Option<BTreeMap<String, String>> {
    let Value::Object(fields) = value else {
        faults.push(Violation::new(place, format!("must be an object, but is {}", type_of(&value))));
        return None;
    };
    if fields.len() > names::LABELS_MAX {
        faults.push(Violation::new(place, format!("at most {} labels are accepted", names::LABELS_MAX)));
    }
    let mut labels = BTreeMap::new();
    for (key, value) in fields {
        let at = format!("{place}/{}", escape(&key));
        if let Err(message) = names::check_label_key(&key) {
            faults.push(Violation::new(&at, message));
        }
        match string(value).and_then(|text| names::check_label_value(&text).map(|()| text)) {
            Ok(text) => {
                labels.insert(key, text);
            }
            Err(message) => faults.push(Violation::new(&at, message)),
        }
    }
    Some(labels)
}

/// `{kind, name}`.
pub(crate) fn reference(value: Value, place: &str, faults: &mut Vec<Violation>) -> Option<ResourceRef> {
    let mut fields = Fields::open(value, place, faults)?;
    let kind = fields.required("kind", kind);
    let name = fields.required("name", name);
    fields.finish();
    Some(ResourceRef::new(kind?, name?))
}

/// The list `values` of an edge.
pub(crate) fn flows(fields: &mut Fields<'_>) -> Vec<FieldFlow> {
    fields.objects("values", FLOWS_MAX, |value, place, faults| {
        let mut fields = Fields::open(value, place, faults)?;
        let dependent_field = fields.required("dependent_field", pointer);
        let source_field = fields.required("source_field", pointer);
        fields.finish();
        Some(FieldFlow { dependent_field: dependent_field?, source_field: source_field? })
    })
}

/// The text of a well-formed pointer.
pub(crate) fn pointer(value: Value) -> Result<String, String> {
    let text = string(value)?;
    Pointer::parse(&text).map(|_| text).map_err(|error| error.to_string())
}
