//! From a JSON value to a document, or to everything that is wrong with it.

use super::fields::{Fields, boolean, nearest, string, whole_number, word};
use super::parts::{flows, kind, kind_version, labels, name};
use super::{
    DependsOn, Document, ProviderConfigDocument, ReactorBindingDocument, ResourceDocument, manifest, names,
};
use crate::ids::{ResourceRef, Revision};
use crate::json::{self, pointer::escape};
use crate::resource::FieldFlow;
use crate::value_flow;
use crate::violation::Violation;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};

/// Largest opaque bundle of a provider config, in decoded bytes: 1 MiB.
pub const DATA_MAX: usize = 1024 * 1024;
/// Most edges that one resource may declare.
pub const DEPENDS_ON_MAX: usize = 1000;
/// The transitions a reactor binding may subscribe to.
pub const TRANSITIONS: [&str; 6] = ["created", "synced", "ready", "degraded", "failed", "deleted"];

#[derive(Clone, Copy)]
enum DocumentType {
    Kind,
    ProviderConfig,
    ReactorBinding,
    Resource,
}

/// Reads one document. `default_type` is the type word for a document without one.
///
/// Without either, a document that reads like a manifest (`kind`, `kind_version` and `reactions`, but no `name`)
/// is one, and anything else is a resource. A missing `spec` is the empty object; a `spec` of null stays null.
///
/// # Errors
/// Every fault, in order of the document, with pointers from its root. For a manifest they include what
/// [`crate::kind::check`] finds.
pub fn parse(value: Value, default_type: Option<&str>) -> Result<Document, Vec<Violation>> {
    let mut faults = Vec::new();
    let document = document(value, default_type, &mut faults);
    match document {
        Some(document) if faults.is_empty() => Ok(document),
        _ => {
            faults.sort_unstable();
            faults.dedup();
            Err(faults)
        }
    }
}

fn document(value: Value, default_type: Option<&str>, faults: &mut Vec<Violation>) -> Option<Document> {
    if json::depth(&value) > json::DEPTH_MAX {
        faults.push(Violation::new("", format!("is nested deeper than {} levels", json::DEPTH_MAX)));
        return None;
    }
    let looks_like_manifest = |value: &Value| {
        let has = |field| value.get(field).is_some();
        has("kind") && has("kind_version") && has("reactions") && !has("name")
    };
    let inferred = if looks_like_manifest(&value) { "kind" } else { "resource" };
    let mut fields = Fields::open(value, "", faults)?;
    let word = fields.optional("type", string);
    let document_type = match document_type(word.as_deref().or(default_type).unwrap_or(inferred)) {
        Ok(document_type) => document_type,
        Err(message) => {
            // Which fields are known depends on the type, so nothing more can be said.
            fields.fault("type", message);
            return None;
        }
    };
    match document_type {
        DocumentType::Kind => manifest::read(fields).map(Box::new).map(Document::Kind),
        DocumentType::ProviderConfig => provider_config(fields).map(Document::ProviderConfig),
        DocumentType::ReactorBinding => reactor_binding(fields).map(Document::ReactorBinding),
        DocumentType::Resource => resource(fields).map(Document::Resource),
    }
}

fn document_type(word: &str) -> Result<DocumentType, String> {
    match word {
        "kind" | "manifest" | "crd" => Ok(DocumentType::Kind),
        "providerconfig" => Ok(DocumentType::ProviderConfig),
        "reactorbinding" => Ok(DocumentType::ReactorBinding),
        "resource" => Ok(DocumentType::Resource),
        other => {
            let hint = nearest(other, names::TYPE_WORDS)
                .map_or_else(String::new, |known| format!("; did you mean `{known}`?"));
            Err(format!("`{}` is not a type of document{hint}", super::fields::clip(other)))
        }
    }
}

fn resource(mut fields: Fields<'_>) -> Option<ResourceDocument> {
    let kind = fields.required("kind", kind);
    let kind_version = fields.required("kind_version", kind_version);
    let name = fields.required("name", name);
    let labels = fields.object("labels", labels).unwrap_or_default();
    let spec = fields.take("spec").unwrap_or_else(|| Value::Object(Map::new()));
    let provider_config_ref = fields.optional("provider_config_ref", super::parts::name);
    let expected_revision = fields.optional("expected_revision", whole_number).map(Revision);
    let deletion_protection = fields.optional("deletion_protection", boolean);
    let management = fields.optional("management", management);
    let depends_on = fields.objects("depends_on", DEPENDS_ON_MAX, |value, place, faults| {
        let mut fields = Fields::open(value, place, faults)?;
        let kind = fields.required("kind", super::parts::kind);
        let name = fields.required("name", super::parts::name);
        let values = flows(&mut fields);
        fields.finish();
        Some(DependsOn { target: ResourceRef::new(kind?, name?), values })
    });
    check_edges(&mut fields, kind.as_deref(), name.as_deref(), &spec, &depends_on);
    fields.finish();
    Some(ResourceDocument {
        kind: kind?,
        kind_version: kind_version?,
        name: name?,
        labels,
        spec,
        provider_config_ref,
        expected_revision,
        deletion_protection,
        management,
        depends_on,
    })
}

fn management(value: Value) -> Result<String, String> {
    match word(value, &["full", "observe"])? {
        "observe" => Err("`observe` is not supported yet; leave it out or say `full`".to_owned()),
        word => Ok(word.to_owned()),
    }
}

/// What edges must obey together.
fn check_edges(
    fields: &mut Fields<'_>,
    kind: Option<&str>,
    name: Option<&str>,
    spec: &Value,
    edges: &[DependsOn],
) {
    let mut seen = HashSet::new();
    for edge in edges {
        let target = &edge.target;
        if Some(target.kind.as_str()) == kind && Some(target.name.as_str()) == name {
            fields.fault("depends_on", format!("{target} depends on itself"));
        }
        if !seen.insert(target) {
            fields.fault("depends_on", format!("{target} is listed twice"));
        }
    }
    let flows: Vec<&FieldFlow> = edges.iter().flat_map(|edge| &edge.values).collect();
    for violation in value_flow::check_flows(spec, flows) {
        let place = if violation.pointer.is_empty() {
            String::new()
        } else {
            format!("/spec{}: ", violation.pointer)
        };
        fields.fault("depends_on", format!("{place}{}", violation.message));
    }
}

fn provider_config(mut fields: Fields<'_>) -> Option<ProviderConfigDocument> {
    let name = fields.required("name", name);
    let kind = fields.required("kind", kind);
    let kind_version = fields.required("kind_version", kind_version);
    let is_default = fields.optional("is_default", boolean).unwrap_or(false);
    let spec = fields.take("spec").unwrap_or_else(|| Value::Object(Map::new()));
    let data = fields.optional("data", data);
    fields.finish();
    Some(ProviderConfigDocument {
        name: name?,
        kind: kind?,
        kind_version: kind_version?,
        is_default,
        spec,
        data,
    })
}

/// A base64 bundle, kept as text. Line breaks, which YAML blocks bring along, are taken out.
fn data(value: Value) -> Result<String, String> {
    let mut text = string(value)?;
    text.retain(|c| !c.is_ascii_whitespace());
    // Four characters carry three bytes; refuse by length before decoding anything.
    if text.len() / 4 * 3 > DATA_MAX + 3 {
        return Err(format!("is larger than {DATA_MAX} bytes"));
    }
    let bytes = STANDARD.decode(&text).map_err(|error| format!("is not base64: {error}"))?;
    if bytes.len() > DATA_MAX {
        return Err(format!("is larger than {DATA_MAX} bytes"));
    }
    Ok(text)
}

fn reactor_binding(mut fields: Fields<'_>) -> Option<ReactorBindingDocument> {
    let name = fields.required("name", name);
    let watch_kind = fields.required("watch_kind", kind);
    let watch_kind_version = fields.optional("watch_kind_version", kind_version);
    let transition = fields.required("transition", |value| word(value, &TRANSITIONS).map(str::to_owned));
    let reactor = fields.required("reactor", kind);
    let reactor_version = fields.optional("reactor_version", kind_version);
    let label_match = fields.object("label_match", label_match).unwrap_or_default();
    let enabled = fields.optional("enabled", boolean).unwrap_or(true);
    fields.finish();
    Some(ReactorBindingDocument {
        name: name?,
        watch_kind: watch_kind?,
        watch_kind_version,
        transition: transition?,
        reactor: reactor?,
        reactor_version,
        label_match,
        enabled,
    })
}

/// Labels to look for; unlike labels to set, the system's own are among them.
fn label_match(value: Value, place: &str, faults: &mut Vec<Violation>) -> Option<BTreeMap<String, String>> {
    let Value::Object(fields) = value else {
        faults.push(Violation::new(place, "must be an object"));
        return None;
    };
    let mut labels = BTreeMap::new();
    for (key, value) in fields {
        match string(value) {
            Ok(text) => {
                labels.insert(key, text);
            }
            Err(message) => faults.push(Violation::new(format!("{place}/{}", escape(&key)), message)),
        }
    }
    Some(labels)
}
