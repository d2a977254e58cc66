//! What a composer wants to exist: the whole set, every time.

use crate::items::Items;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A child that the composer wants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Child {
    /// Its kind.
    pub kind: String,
    /// Its kind's version.
    pub kind_version: u16,
    /// Unique per kind in the whole fleet.
    pub name: String,
    /// The declared spec; fields that a flow fills are left out.
    pub spec: Value,
    /// Labels, for people and for the composer's own rollup.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// A provider config that overrides the kind's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<String>,
    /// None keeps what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<bool>,
}

/// `from` needs `to` Ready first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// The dependent.
    pub from: Reference,
    /// What it depends on.
    pub to: Reference,
    /// Values that flow from `to`'s status into `from`'s spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<FieldFlow>,
}

/// A child by kind and name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reference {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// `kind` and `name`.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), name: name.into() }
    }
}

/// One value flow; both ends are RFC 6901 pointers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldFlow {
    /// Where it goes, in the dependent's spec.
    pub dependent_field: String,
    /// Where it comes from, in the upstream's status.
    pub source_field: String,
}

/// A composer's output. Items are kept as text, so that a set of a million fits in memory and a program's numbers
/// reach the engine as written; they are split into frames as they come.
#[derive(Clone, Debug, Default)]
pub struct Composition {
    pub(crate) children: Items,
    pub(crate) edges: Items,
    pub(crate) configs: Items,
}

impl Composition {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wants a child.
    pub fn child(&mut self, child: &Child) -> &mut Self {
        self.children.push_json(child);
        self
    }

    /// Wants an edge.
    pub fn edge(&mut self, edge: &Edge) -> &mut Self {
        self.edges.push_json(edge);
        self
    }

    /// Wants a provider config document.
    pub fn config(&mut self, config: &Value) -> &mut Self {
        self.configs.push_json(config);
        self
    }

    /// Takes over lists that someone else wrote, untouched.
    pub fn raw(children: Vec<Box<RawValue>>, edges: Vec<Box<RawValue>>, configs: Vec<Box<RawValue>>) -> Self {
        fn packed(raw: Vec<Box<RawValue>>) -> Items {
            let mut items = Items::default();
            raw.into_iter().for_each(|item| items.push(item.get().as_bytes()));
            items
        }
        Self { children: packed(children), edges: packed(edges), configs: packed(configs) }
    }

    /// The children's documents.
    pub fn children(&self) -> &Items {
        &self.children
    }

    /// The edges' documents.
    pub fn edges(&self) -> &Items {
        &self.edges
    }

    /// The provider configs' documents.
    pub fn configs(&self) -> &Items {
        &self.configs
    }

    pub(crate) fn parts(&self) -> [(&'static str, &Items); 3] {
        [("children", &self.children), ("edges", &self.edges), ("configs", &self.configs)]
    }
}
