//! Resources as the API shows them.

use serde_json::{Value, json};

/// A resource in every width. It is exactly three days old, so that its age reads the same all day.
pub fn resource(kind: &str, name: &str, phase: &str) -> Value {
    let age = chrono::Duration::days(3) + chrono::Duration::minutes(5);
    let created_at = (chrono::Utc::now() - age).to_rfc3339();
    let why = if phase == "Ready" { "" } else { "waits for account/a to be Ready" };
    json!({
        "id": format!("id-{name}"), "kind": kind, "kindVersion": 1, "name": name,
        "labels": {"team": "payments"}, "spec": {"cidr": "10.0.0.0/16", "share": 0.1},
        "effectiveSpec": {"cidr": "10.0.0.0/16", "share": 0.1, "account_id": "123"},
        "status": {"vpc_id": "vpc-1"}, "phase": phase, "why": why,
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "Waiting", "message": why,
            "lastTransition": created_at, "observedGeneration": "2",
        }],
        "generation": "2", "syncedGeneration": "1", "revision": "3", "epoch": "4",
        "owner": {"id": "id-root", "kind": "zone", "name": "root"}, "root": "id-root",
        "providerConfigRef": null, "deletionProtection": false,
        "dependsOn": [{
            "kind": "account", "name": "a", "id": "id-a",
            "values": [{
                "dependentField": "/account_id", "sourceField": "/account_id", "flowed": true, "value": "123",
                "position": "41", "reason": null,
            }],
        }],
        "attempts": 1,
        "lastFailure": {
            "reaction": "work", "message": "quota exceeded", "terminal": false, "attempt": 1, "at": created_at,
        },
        "claim": null, "retryAt": null, "createdAt": created_at, "updatedAt": created_at,
        "events": [event(7, "Created"), event(9, "Claimed")],
    })
}

/// An event of `vpc/a`.
pub fn event(position: u64, event_type: &str) -> Value {
    json!({
        "position": position.to_string(), "at": "2026-01-02T03:04:05.678Z", "aggregateType": "resource",
        "aggregateId": "id-a", "sequence": "1", "eventType": event_type,
        "payload": {event_type: {"reason": "tested"}}, "metadata": {"actor": "ann"},
        "kind": "vpc", "name": "a",
    })
}

/// A page with everything on it.
pub fn page(nodes: Vec<Value>) -> Value {
    json!({"resources": {"nodes": nodes, "pageInfo": {"hasNextPage": false, "endCursor": null}, "position": "99"}})
}

/// A change of a resource.
pub fn change(position: u64, event_type: &str, resource: &Value) -> Value {
    let gone = event_type == "Deleted";
    json!({
        "position": position.to_string(), "eventType": event_type, "kind": resource["kind"],
        "name": resource["name"], "phase": resource["phase"],
        "resource": if gone { &Value::Null } else { resource }, "leftFilter": gone,
    })
}

/// Instants differ from run to run; what is said around them must not.
pub fn without_instants(text: &str) -> String {
    let instant = |word: &str| word.len() >= 20 && chrono::DateTime::parse_from_rfc3339(word).is_ok();
    let lines = text.lines().map(|line| {
        line.split(' ').map(|word| if instant(word) { "INSTANT" } else { word }).collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}
