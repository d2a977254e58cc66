//! Edges with values that flow over them, in a story.

use super::story::Story;
use converge_domain::resource::{
    Configured, Edge, FieldFlow, Gate, Input, ResourceEvent, Unresolved, UpstreamsEvaluated,
};
use converge_domain::{Generation, ResourceId, ResourceRef};
use serde_json::json;
use std::sync::Arc;

/// `dependent` needs `account/a`, whose id has flowed into it and whose ip has not, and an account that is missing.
pub fn flow(story: &mut Story, dependent: ResourceId, account: ResourceId) {
    let flow = |dependent: &str, source: &str| FieldFlow {
        dependent_field: dependent.to_owned(),
        source_field: source.to_owned(),
    };
    let edge = |name: &str, upstream, values, unbound| Edge {
        upstream,
        upstream_ref: ResourceRef::new("account", name),
        values,
        conflicted: false,
        unbound,
    };
    let missing = ResourceRef::new("account", "missing");
    let edges = vec![
        edge("a", account, vec![flow("/id", "/id"), flow("/ip", "/ip")], false),
        edge("missing", missing.name_id(), vec![], true),
    ];
    let at = story.now();
    story.tell(
        dependent,
        ResourceEvent::Configured(Configured {
            generation: Generation(1),
            kind_version: None,
            shape: None,
            spec: None,
            labels: None,
            provider_config_ref: None,
            deletion_protection: None,
            edges: Some(edges),
            released: vec![],
            pass_id: None,
            at,
        }),
    );
    story.tell(
        dependent,
        ResourceEvent::UpstreamsEvaluated(UpstreamsEvaluated {
            gate: Gate::Waiting,
            generation: Generation(2),
            inputs: vec![Input {
                field: "/id".to_owned(),
                source: account,
                source_field: "/id".to_owned(),
                source_sequence: 1,
                value: Arc::new(json!(null)),
            }],
            removed: vec![],
            unresolved: vec![Unresolved {
                field: "/ip".to_owned(),
                upstream: ResourceRef::new("account", "a"),
                source_field: "/ip".to_owned(),
                reason: "missing".to_owned(),
            }],
            held_by: vec![],
            at,
        }),
    );
}
