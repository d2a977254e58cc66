//! The items of a composer's output, as every SDK and program sends them.
//!
//! Items are read one by one, so that a million of them never have to be in memory as one value.

use crate::document::fields::{Fields, boolean};
use crate::document::parts::{flows, kind, kind_version, labels, name, reference};
use crate::ids::{KindRef, ResourceRef};
use crate::json;
use crate::resource::FieldFlow;
use crate::violation::Violation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A child that its composer wants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChildItem {
    pub kind: String,
    pub kind_version: u16,
    pub name: String,
    #[serde(default)]
    pub spec: Value,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<String>,
    /// None: keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<bool>,
}

/// `from` depends on `to`; each value is read from `to`'s status and written into `from`'s spec.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EdgeItem {
    pub from: ResourceRef,
    pub to: ResourceRef,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<FieldFlow>,
}

impl ChildItem {
    /// Reads one element of `children`. A missing `spec` is the empty object.
    ///
    /// # Errors
    /// Every fault, with pointers from the item's root.
    pub fn parse(value: Value) -> Result<Self, Vec<Violation>> {
        let mut faults = too_deep(&value);
        if !faults.is_empty() {
            return Err(faults);
        }
        let child = Self::read(value, &mut faults);
        child.filter(|_| faults.is_empty()).ok_or(faults)
    }

    fn read(value: Value, faults: &mut Vec<Violation>) -> Option<Self> {
        let mut fields = Fields::open(value, "", faults)?;
        let kind = fields.required("kind", kind);
        let kind_version = fields.required("kind_version", kind_version);
        let child_name = fields.required("name", name);
        let spec = fields.take("spec").unwrap_or_else(|| Value::Object(Map::new()));
        let labels = fields.object("labels", labels).unwrap_or_default();
        let provider_config_ref = fields.optional("provider_config_ref", name);
        let deletion_protection = fields.optional("deletion_protection", boolean);
        fields.finish();
        Some(Self {
            kind: kind?,
            kind_version: kind_version?,
            name: child_name?,
            spec,
            labels,
            provider_config_ref,
            deletion_protection,
        })
    }

    /// `kind/name`.
    pub fn reference(&self) -> ResourceRef {
        ResourceRef::new(&self.kind, &self.name)
    }

    /// `kind/vN`.
    pub fn kind_ref(&self) -> KindRef {
        KindRef::new(&self.kind, self.kind_version)
    }
}

impl EdgeItem {
    /// Reads one element of `edges`.
    ///
    /// # Errors
    /// Every fault, with pointers from the item's root.
    pub fn parse(value: Value) -> Result<Self, Vec<Violation>> {
        let mut faults = too_deep(&value);
        if !faults.is_empty() {
            return Err(faults);
        }
        let edge = Self::read(value, &mut faults);
        edge.filter(|_| faults.is_empty()).ok_or(faults)
    }

    fn read(value: Value, faults: &mut Vec<Violation>) -> Option<Self> {
        let mut fields = Fields::open(value, "", faults)?;
        let from = fields.object("from", reference);
        let to = fields.object("to", reference);
        let values = flows(&mut fields);
        for (name, end) in [("from", &from), ("to", &to)] {
            if end.is_none() && !fields.has_fault(name) {
                fields.fault(name, "is required");
            }
        }
        fields.finish();
        Some(Self { from: from?, to: to?, values })
    }
}

impl std::fmt::Display for EdgeItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

fn too_deep(value: &Value) -> Vec<Violation> {
    if json::depth(value) > json::DEPTH_MAX {
        vec![Violation::new("", format!("is nested deeper than {} levels", json::DEPTH_MAX))]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(faults: Vec<Violation>) -> Vec<String> {
        faults.iter().map(Violation::to_string).collect()
    }

    #[test]
    fn items_are_read_as_documented() {
        let child = ChildItem::parse(json!({"kind": "vpc", "kind_version": 1, "name": "a-vpc",
            "labels": {"team": ""}, "provider_config_ref": "x", "deletion_protection": true}))
        .unwrap();
        assert_eq!(child.reference().to_string(), "vpc/a-vpc");
        assert_eq!((child.spec, child.deletion_protection), (json!({}), Some(true)));

        let edge = EdgeItem::parse(
            json!({"from": {"kind": "route", "name": "a/r"}, "to": {"kind": "vpc", "name": "v"},
            "values": [{"dependent_field": "/a~1b", "source_field": ""}]}),
        )
        .unwrap();
        assert_eq!(edge.to_string(), "route/a/r -> vpc/v");
    }

    #[test]
    fn every_fault_of_an_item_is_named() {
        let faults = ChildItem::parse(json!({"kind": "Vpc", "name": "-", "kind_versoin": 1,
            "labels": {"converge.sh/app": "x", "n": 1}}));
        assert_eq!(
            lines(faults.unwrap_err()),
            [
                "/kind: `Vpc` is not a kind: 1 to 63 of a-z 0-9 and -, starting with a letter and not ending with -",
                "/kind_version: is required",
                "/name: `-` is not a name: 1 to 253 of A-Z a-z 0-9 . _ : - and /, starting and ending with a letter or digit",
                "/labels/converge.sh~1app: labels under `converge.sh/` are set by the system only",
                "/labels/n: must be a string, but is a number",
                "/kind_versoin: is not a known field; did you mean `kind_version`?",
            ]
        );
        let faults = EdgeItem::parse(json!({"from": {"kind": "a"}, "values": [{"dependent_field": "x"}]}));
        assert_eq!(
            lines(faults.unwrap_err()),
            [
                "/from/name: is required",
                "/values/0/dependent_field: a pointer is empty or starts with `/`",
                "/values/0/source_field: is required",
                "/to: is required",
            ]
        );
    }
}
