//! Things as machines read them: documents' own snake_case, a fixed order of fields, nothing left out.
//!
//! This shape is a promise to scripts. The API's names may grow their own way.

use crate::client::model::{Event, Kind, ProviderConfig, Resource};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A resource: what its document says, then what became of it.
#[derive(Serialize)]
pub struct ResourceView<'a> {
    #[serde(rename = "type")]
    document_type: &'static str,
    kind: &'a str,
    kind_version: u16,
    name: &'a str,
    labels: &'a Value,
    spec: &'a Value,
    provider_config_ref: Option<&'a str>,
    deletion_protection: bool,
    depends_on: Vec<Value>,
    id: &'a str,
    phase: &'a str,
    why: &'a str,
    status: &'a Value,
    conditions: Vec<Value>,
    effective_spec: &'a Value,
    revision: u64,
    generation: u64,
    synced_generation: u64,
    epoch: u64,
    owner: Option<Value>,
    root: &'a str,
    attempts: u32,
    last_failure: Option<Value>,
    claim: Option<Value>,
    retry_at: Option<DateTime<Utc>>,
    created_at: Option<DateTime<Utc>>,
    updated_at: Option<DateTime<Utc>>,
}

/// The view of a resource that was asked for whole.
pub fn resource(resource: &Resource) -> ResourceView<'_> {
    ResourceView {
        document_type: "resource",
        kind: &resource.kind,
        kind_version: resource.kind_version,
        name: &resource.name,
        labels: &resource.labels,
        spec: &resource.spec,
        provider_config_ref: resource.provider_config_ref.as_deref(),
        deletion_protection: resource.deletion_protection,
        depends_on: resource
            .depends_on
            .iter()
            .map(|edge| {
                let flows = edge.values.iter().map(|flow| {
                    json!({"dependent_field": flow.dependent_field, "source_field": flow.source_field})
                });
                json!({
                    "kind": edge.kind, "name": edge.name, "id": edge.id,
                    "values": flows.collect::<Vec<_>>(),
                })
            })
            .collect(),
        id: &resource.id,
        phase: &resource.phase,
        why: &resource.why,
        status: &resource.status,
        conditions: resource
            .conditions
            .iter()
            .map(|condition| {
                json!({
                    "type": condition.condition_type, "status": condition.status,
                    "reason": condition.reason, "message": condition.message,
                    "last_transition": condition.last_transition,
                    "observed_generation": condition.observed_generation,
                })
            })
            .collect(),
        effective_spec: &resource.effective_spec,
        revision: resource.revision,
        generation: resource.generation,
        synced_generation: resource.synced_generation,
        epoch: resource.epoch,
        owner: resource
            .owner
            .as_ref()
            .map(|owner| json!({"kind": owner.kind, "name": owner.name, "id": owner.id})),
        root: &resource.root,
        attempts: resource.attempts,
        last_failure: resource.last_failure.as_ref().map(|failure| {
            json!({
                "reaction": failure.reaction, "message": failure.message, "terminal": failure.terminal,
                "attempt": failure.attempt, "at": failure.at,
            })
        }),
        claim: resource.claim.as_ref().map(|claim| {
            json!({
                "reaction": claim.reaction, "worker": claim.worker, "epoch": claim.epoch,
                "claim_id": claim.claim_id, "claimed_at": claim.claimed_at,
                "deadline_at": claim.deadline_at,
            })
        }),
        retry_at: resource.retry_at,
        created_at: resource.created_at,
        updated_at: resource.updated_at,
    }
}

/// A kind: its manifest, which can be applied again as it is.
pub fn kind(kind: &Kind) -> Value {
    let mut view = Map::new();
    view.insert("type".to_owned(), "kind".into());
    if let Value::Object(manifest) = &kind.manifest {
        view.extend(manifest.clone());
    }
    Value::Object(view)
}

/// A provider config, with its bundle's size in place of the bundle.
pub fn provider_config(config: &ProviderConfig) -> Value {
    json!({
        "type": "providerconfig", "name": config.name, "kind": config.kind,
        "kind_version": config.kind_version, "is_default": config.is_default, "spec": config.spec,
        "data_bytes": config.data_bytes,
    })
}

/// An event as the log has it.
#[derive(Serialize)]
pub struct EventView<'a> {
    position: u64,
    at: DateTime<Utc>,
    aggregate_type: &'a str,
    aggregate_id: &'a str,
    sequence: u64,
    kind: Option<&'a str>,
    name: Option<&'a str>,
    event_type: &'a str,
    payload: &'a Value,
    metadata: &'a Value,
}

/// The view of an event.
pub fn event(event: &Event) -> EventView<'_> {
    EventView {
        position: event.position,
        at: event.at,
        aggregate_type: &event.aggregate_type,
        aggregate_id: &event.aggregate_id,
        sequence: event.sequence,
        kind: event.kind.as_deref(),
        name: event.name.as_deref(),
        event_type: &event.event_type,
        payload: &event.payload,
        metadata: &event.metadata,
    }
}
