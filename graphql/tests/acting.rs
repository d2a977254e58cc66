//! Deletes and operators' actions on many, and the graph.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use converge_domain::resource::{
    Configured, Edge, FieldFlow, Gate, Input, ResourceEvent, Unresolved, UpstreamsEvaluated,
};
use converge_domain::{Generation, ResourceId, ResourceRef};
use serde_json::{Value, json};
use std::sync::Arc;
use support::World;

async fn world() -> World {
    let mut world = World::new().await;
    for n in 0..3 {
        let team = if n < 2 { "x" } else { "y" };
        world.story.create_labelled("vpc", &format!("v{n}"), None, &[("team", team)]);
    }
    world.sync().await;
    world
}

fn names(answer: &Value, field: &str, list: &str) -> Vec<String> {
    let list = answer["data"][field][list].as_array().unwrap_or_else(|| panic!("{answer}"));
    list.iter()
        .map(|one| format!("{}/{}", one["kind"].as_str().unwrap(), one["name"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn actions_go_to_everything_that_is_named_or_selected() {
    let world = world().await;
    for action in ["quarantine", "release", "resync", "abandon"] {
        let query = format!(
            "mutation($targets: Targets!) {{ {action}(targets: $targets, reason: \"r\") {{ position results {{ kind name changed }} }} }}"
        );
        let selected = world.ask(&query, json!({"targets": {"selector": {"labels": {"team": "x"}}}})).await;
        assert_eq!(names(&selected, action, "results"), ["vpc/v0", "vpc/v1"]);
        let named = world.ask(&query, json!({"targets": {"names": [{"kind": "vpc", "name": "v2"}]}})).await;
        assert_eq!(names(&named, action, "results"), ["vpc/v2"]);
        assert_eq!(named["data"][action]["position"], "44");
    }
}

#[tokio::test]
async fn a_selector_that_selects_everything_is_refused_and_so_is_an_abandon_without_a_reason() {
    let world = world().await;
    let delete = "mutation($targets: Targets!) { deleteMany(targets: $targets) { position } }";
    let everything = world.ask(delete, json!({"targets": {"selector": {}}})).await;
    assert_eq!(everything["errors"][0]["extensions"]["code"], "BAD_REQUEST", "{everything}");
    let abandon =
        "mutation { abandon(targets: {names: [{kind: \"vpc\", name: \"v0\"}]}, reason: \" \") { position } }";
    let refused = world.ask(abandon, json!({})).await;
    assert_eq!(refused["errors"][0]["extensions"]["code"], "BAD_REQUEST", "{refused}");
    let many: Vec<Value> = (0..1001).map(|n| json!({"kind": "vpc", "name": format!("n{n}")})).collect();
    let refused = world.ask(delete, json!({"targets": {"names": many}})).await;
    assert!(refused["errors"][0]["message"].as_str().unwrap().contains("1000"), "{refused}");
}

#[tokio::test]
async fn a_delete_of_many_names_everything_that_goes() {
    let world = world().await;
    let delete = "mutation($targets: Targets!) { deleteMany(targets: $targets, cascade: true) { position going { kind name already } } }";
    let selected = world.ask(delete, json!({"targets": {"selector": {"kind": "vpc"}}})).await;
    assert_eq!(names(&selected, "deleteMany", "going"), ["vpc/v0", "vpc/v1", "vpc/v2"]);
    let refused =
        world.ask(delete, json!({"targets": {"names": [{"kind": "vpc", "name": "conflict"}]}})).await;
    assert_eq!(refused["errors"][0]["extensions"]["code"], "CONFLICT", "{refused}");
}

#[tokio::test]
async fn a_kind_version_is_deleted_by_its_number() {
    let world = world().await;
    let delete = "mutation($kind: String!) { deleteKind(kind: $kind, kindVersion: 1) }";
    assert_eq!(world.ask(delete, json!({"kind": "vpc"})).await["data"]["deleteKind"], "45");
    let refused = world.ask(delete, json!({"kind": "conflict"})).await;
    assert_eq!(refused["errors"][0]["extensions"]["code"], "CONFLICT", "{refused}");
}

/// `zone/z` above `account/a` and `vpc/v`; the account's id has flowed into the vpc, its ip has not.
async fn with_edges() -> (World, ResourceId) {
    let mut world = World::new().await;
    let zone = world.story.create("zone", "z", None);
    let account = world.story.create("account", "a", Some(zone));
    let vpc = world.story.create("vpc", "v", Some(zone));
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
    let at = world.story.now();
    world.story.tell(
        vpc,
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
    world.story.tell(
        vpc,
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
    world.sync().await;
    (world, vpc)
}

#[tokio::test]
async fn a_graph_tells_which_event_gave_each_value() {
    let (world, vpc) = with_edges().await;
    let given = world.story.events.len();
    let query = "query($kind: String!, $name: String!) { graph(kind: $kind, name: $name) { complete
        nodes { kind name } edges { from to { id kind name conflicted
            values { dependentField flowed value sourceSequence position reason } } } } }";
    let answer = world.ask(query, json!({"kind": "zone", "name": "z"})).await;
    assert_eq!(names(&answer, "graph", "nodes"), ["zone/z", "account/a", "vpc/v"]);
    let edges = &answer["data"]["graph"]["edges"];
    assert_eq!(edges[0]["from"], vpc.to_string());
    assert_eq!(
        edges[0]["to"]["values"],
        json!([
            {"dependentField": "/id", "flowed": true, "value": null, "sourceSequence": "1",
             "position": given.to_string(), "reason": null},
            {"dependentField": "/ip", "flowed": false, "value": null, "sourceSequence": null,
             "position": null, "reason": "missing"},
        ])
    );
    assert_eq!(edges[1]["to"]["id"], json!(null), "a name that nobody bears");
    // Around a single resource: what it needs comes along.
    let answer = world.ask(query, json!({"kind": "vpc", "name": "v"})).await;
    assert_eq!(names(&answer, "graph", "nodes"), ["vpc/v", "account/a"]);
    let answer = world.ask(query, json!({"kind": "vpc", "name": "nobody"})).await;
    assert_eq!(answer["data"]["graph"], json!(null), "{answer}");
}
