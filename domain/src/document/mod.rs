//! Documents: what users write. Types here, reading them in `parse`.

pub(crate) mod fields;
mod manifest;
pub mod names;
mod parse;
pub(crate) mod parts;

pub use crate::violation::Violation;
pub use parse::{DATA_MAX, DEPENDS_ON_MAX, TRANSITIONS, parse};

use crate::ids::{ResourceRef, Revision};
use crate::kind::Manifest;
use crate::resource::FieldFlow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One document of any type.
#[derive(Clone, PartialEq, Debug)]
pub enum Document {
    Kind(Box<Manifest>),
    ProviderConfig(ProviderConfigDocument),
    ReactorBinding(ReactorBindingDocument),
    Resource(ResourceDocument),
}

/// A resource as declared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResourceDocument {
    pub kind: String,
    pub kind_version: u16,
    pub name: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub spec: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<Revision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DependsOn>,
}

/// A declared edge to another resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DependsOn {
    #[serde(flatten)]
    pub target: ResourceRef,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<FieldFlow>,
}

/// A provider config as declared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProviderConfigDocument {
    pub name: String,
    pub kind: String,
    pub kind_version: u16,
    #[serde(default)]
    pub is_default: bool,
    #[serde(default)]
    pub spec: Value,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// A reactor binding as declared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReactorBindingDocument {
    pub name: String,
    pub watch_kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_kind_version: Option<u16>,
    pub transition: String,
    pub reactor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reactor_version: Option<u16>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_match: BTreeMap<String, String>,
    #[serde(default = "enabled")]
    pub enabled: bool,
}

const fn enabled() -> bool {
    true
}

#[cfg(test)]
mod tests;
