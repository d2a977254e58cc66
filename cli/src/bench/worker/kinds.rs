//! The kinds of the scenarios, as manifests.

use serde_json::{Value, json};

/// The leaf of `reconcile` and `idle`.
pub const LEAF: &str = "bench-leaf";
/// The leaf of `latency`: its status tells when the worker had the task.
pub const PROBE: &str = "bench-probe";
/// The composer of all trees.
pub const ROOT: &str = "bench-root";

pub const ACCOUNT: &str = "bench-account";
pub const VPC: &str = "bench-vpc";
pub const GATEWAY: &str = "bench-tgw";
pub const ROUTE: &str = "bench-route";
/// What it composes.
pub const CHILD_KINDS: [&str; 4] = [ACCOUNT, VPC, GATEWAY, ROUTE];

/// One reaction, no schema, nothing that costs.
pub fn leaf_kind() -> Value {
    bare(LEAF)
}

/// The same under another name.
pub fn probe_kind() -> Value {
    bare(PROBE)
}

fn bare(kind: &str) -> Value {
    json!({
        "type": "kind", "kind": kind, "kind_version": 1,
        "reactions": [{"name": "work", "trigger": "specChange", "emits": ["status"]}],
    })
}

/// The four kinds that a root is composed of: as real ones are, with schemas, ids that flow, and a finalizer.
pub fn child_kinds() -> [Value; 4] {
    let text = json!({"type": "string", "minLength": 1});
    let kind = |kind: &str, required: &[&str]| {
        let mut properties = serde_json::Map::new();
        for field in required {
            properties.insert((*field).to_owned(), text.clone());
        }
        // Whatever an edit changes; see the composer.
        properties.insert("edition".to_owned(), json!({"type": "integer"}));
        properties.insert("pause_ms".to_owned(), json!({"type": "integer"}));
        let mut manifest =
            with_teardown(kind, json!([{"name": "work", "trigger": "specChange", "emits": ["status"]}]));
        manifest["spec_schema"] = json!({
            "type": "object", "additionalProperties": false, "required": required, "properties": properties,
        });
        manifest["status_schema"] =
            json!({"type": "object", "required": ["id"], "properties": {"id": text.clone()}});
        manifest
    };
    [
        kind(ACCOUNT, &["team_name", "email"]),
        kind(VPC, &["account_id", "cidr"]),
        kind(GATEWAY, &["name"]),
        kind(ROUTE, &["vpc_id", "tgw_id"]),
    ]
}

/// Composes, and summarises what became of it.
pub fn root_kind(rollup: bool) -> Value {
    let compose =
        json!({"name": "compose", "trigger": "specChange", "emits": ["children", "edges", "status"]});
    let summarise = json!({"name": "rollup", "trigger": "childrenSettled", "emits": ["status"]});
    let reactions = if rollup { json!([compose, summarise]) } else { json!([compose]) };
    with_teardown(ROOT, reactions)
}

fn with_teardown(kind: &str, mut reactions: Value) -> Value {
    let finalizer = format!("bench.converge/{kind}");
    if let Some(reactions) = reactions.as_array_mut() {
        reactions.push(json!({
            "name": "teardown", "trigger": "deleteRequested", "emits": ["finalizer"], "finalizer": finalizer,
        }));
    }
    json!({
        "type": "kind", "kind": kind, "kind_version": 1, "finalizer_name": finalizer, "reactions": reactions,
    })
}
