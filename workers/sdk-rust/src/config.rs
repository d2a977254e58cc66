//! Provider configs: a kind's default, a resource's override, and how the two become one.

use crate::json::Json;
use bytes::Bytes;
use converge_protocol::v1;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// One provider config as the broker sent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProviderConfig {
    /// Its unique name.
    pub name: String,
    /// A JSON object.
    pub spec: Json,
    /// An opaque bundle; empty when it has none.
    pub data: Bytes,
    /// Rises with every change of this config.
    pub version: u64,
}

/// A kind's default config changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigUpdate {
    /// The kind.
    pub kind: String,
    /// Its version.
    pub kind_version: u32,
    /// None: the kind has no default any more.
    pub config: Option<ProviderConfig>,
}

/// Merges two config specs: objects key by key, all the way down, the override winning; anything else is replaced.
/// An override of `null` is a value like any other.
pub fn effective_config(default: Option<&Value>, over: Option<&Value>) -> Value {
    match (default, over) {
        (Some(default), Some(over)) => merge(default.clone(), over),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => Value::Object(serde_json::Map::new()),
    }
}

/// Picks a bundle: the override's if it has one, else the default's. Bundles are opaque and never merged.
pub fn effective_bundle(default: Option<&Bytes>, over: Option<&Bytes>) -> Option<Bytes> {
    over.filter(|bundle| !bundle.is_empty()).or(default.filter(|bundle| !bundle.is_empty())).cloned()
}

fn merge(default: Value, over: &Value) -> Value {
    let (mut merged, over) = match (default, over) {
        (Value::Object(default), Value::Object(over)) => (default, over),
        (_, over) => return over.clone(),
    };
    for (key, value) in over {
        let under = merged.remove(key);
        let value = match under {
            Some(under) => merge(under, value),
            None => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    Value::Object(merged)
}

/// Wire to type; an empty spec is an empty object.
pub(crate) fn from_wire(wire: v1::ProviderConfig) -> ProviderConfig {
    let spec = if wire.spec.is_empty() { Bytes::from_static(b"{}") } else { wire.spec };
    ProviderConfig { name: wire.name, spec: Json(spec), data: wire.data, version: wire.version }
}

/// The default configs that the broker has sent, by kind and version.
#[derive(Default)]
pub(crate) struct Defaults(RwLock<HashMap<(String, u32), ProviderConfig>>);

impl Defaults {
    pub(crate) fn update(&self, update: &ConfigUpdate) {
        let key = (update.kind.clone(), update.kind_version);
        let mut defaults = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match &update.config {
            Some(config) => defaults.insert(key, config.clone()),
            None => defaults.remove(&key),
        };
    }

    pub(crate) fn get(&self, kind: &str, kind_version: u32) -> Option<ProviderConfig> {
        let defaults = self.0.read().unwrap_or_else(PoisonError::into_inner);
        defaults.get(&(kind.to_owned(), kind_version)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_override_wins_per_key_at_any_depth() {
        let default = json!({ "a": { "x": 1, "y": [1, 2] }, "b": true, "c": "kept" });
        let over = json!({ "a": { "y": [3], "z": null }, "b": { "deep": 1 } });
        assert_eq!(
            effective_config(Some(&default), Some(&over)),
            json!({ "a": { "x": 1, "y": [3], "z": null }, "b": { "deep": 1 }, "c": "kept" })
        );
    }

    #[test]
    fn with_one_side_missing_the_other_stands_and_with_none_it_is_empty() {
        let one = json!({ "a": 1 });
        assert_eq!(effective_config(Some(&one), None), one);
        assert_eq!(effective_config(None, Some(&one)), one);
        assert_eq!(effective_config(None, None), json!({}));
    }

    #[test]
    fn a_bundle_is_replaced_whole_and_an_empty_one_is_none() {
        let (default, over, empty) = (Bytes::from("default"), Bytes::from("over"), Bytes::new());
        assert_eq!(effective_bundle(Some(&default), Some(&over)), Some(over));
        assert_eq!(effective_bundle(Some(&default), Some(&empty)), Some(default));
        assert_eq!(effective_bundle(Some(&empty), None), None);
    }
}
