//! Deletes and operators' actions on many, and the graph.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use converge_domain::{ResourceId, ResourceRef};
use converge_engine::gateway_api::{ActRequest, Action};
use serde_json::{Value, json};
use std::time::Duration;
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
    for (action, meant) in [
        ("quarantine", Action::Quarantine),
        ("release", Action::Release),
        ("resync", Action::Resync),
        ("abandon", Action::Abandon),
    ] {
        let query = format!(
            "mutation($targets: Targets!) {{ {action}(targets: $targets, reason: \"r\") {{ position results {{ kind name changed }} }} }}"
        );
        let selected = world.ask(&query, json!({"targets": {"selector": {"labels": {"team": "x"}}}})).await;
        assert_eq!(names(&selected, action, "results"), ["vpc/v0", "vpc/v1"]);
        let named = world.ask(&query, json!({"targets": {"names": [{"kind": "vpc", "name": "v2"}]}})).await;
        assert_eq!(names(&named, action, "results"), ["vpc/v2"]);
        assert_eq!(named["data"][action]["position"], "44");
        let asked: Vec<ActRequest> = world.gateway.acted.lock().unwrap().drain(..).collect();
        assert!(asked.iter().all(|asked| asked.action == meant && asked.reason == "r"), "{asked:?}");
        assert_eq!(asked[0].targets, [ResourceRef::new("vpc", "v0"), ResourceRef::new("vpc", "v1")]);
    }
}

#[tokio::test]
async fn a_held_prune_is_confirmed_by_its_digest() {
    let world = world().await;
    let confirm =
        "mutation { confirmPrune(kind: \"vpc\", name: \"v0\", digest: \"d1\") { results { name changed } } }";
    assert_eq!(world.data(confirm, json!({})).await["confirmPrune"]["results"][0]["name"], "v0");
    let asked = world.gateway.acted.lock().unwrap()[0].clone();
    assert_eq!(asked.action, Action::ConfirmPrune { digest: "d1".to_owned() });
    assert_eq!(asked.targets, [ResourceRef::new("vpc", "v0")]);
}

#[tokio::test]
async fn a_selector_finds_what_was_written_before_it_and_without_the_list_it_does_nothing() {
    let mut world = World::with(|state| state.limits.min_position_wait = Duration::from_millis(300)).await;
    world.story.create_labelled("vpc", "new", None, &[("team", "x")]);
    // Not waited for here: the selector has to.
    world.append().await;
    let delete =
        "mutation { deleteMany(targets: {selector: {labels: {team: \"x\"}}}) { going { kind name } } }";
    let selected = world.ask(delete, json!({})).await;
    assert_eq!(names(&selected, "deleteMany", "going"), ["vpc/new"]);

    world.freeze.cancel();
    world.story.create_labelled("vpc", "newer", None, &[("team", "x")]);
    world.append().await;
    assert_eq!(world.code(delete, json!({})).await, "UNAVAILABLE");
    assert_eq!(world.gateway.deleted.lock().unwrap().len(), 1, "half a selection is none");
}

#[tokio::test]
async fn a_selector_that_selects_more_than_one_request_takes_is_refused() {
    let mut world = World::new().await;
    for n in 0..1_001 {
        world.story.create("vpc", &format!("v{n}"), None);
    }
    world.sync().await;
    let delete = "mutation { deleteMany(targets: {selector: {kind: \"vpc\"}}) { position } }";
    assert_eq!(world.code(delete, json!({})).await, "BAD_REQUEST");
    assert!(world.gateway.deleted.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_selector_that_selects_everything_is_refused_and_so_is_an_abandon_without_a_reason() {
    let world = world().await;
    let delete = "mutation($targets: Targets!) { deleteMany(targets: $targets) { position } }";
    for everything in [json!({}), json!({"labels": {}, "phase": []}), json!({"namePrefix": ""})] {
        let code = world.code(delete, json!({"targets": {"selector": everything}})).await;
        assert_eq!(code, "BAD_REQUEST", "{everything}");
    }
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
    assert!(world.gateway.deleted.lock().unwrap()[0].cascade);
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
    support::edges::flow(&mut world.story, vpc, account);
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

#[tokio::test]
async fn an_old_value_is_traced_as_far_as_the_bound_and_no_further() {
    let (mut world, vpc) = with_edges().await;
    let given = world.story.events.len().to_string();
    let query = "{ resource(kind: \"vpc\", name: \"v\") { dependsOn { values { value position } } } }";
    let position = async |world: &World| {
        world.data(query, json!({})).await["resource"]["dependsOn"][0]["values"][0]["position"].take()
    };
    // Over a page of the walk.
    let mut later = 0;
    for (until, expected) in [(450, json!(given)), (4_999, json!(given)), (5_000, Value::Null)] {
        while later < until {
            world.story.label(vpc, &[("n", &later.to_string())]);
            later += 1;
        }
        world.append().await;
        assert_eq!(position(&world).await, expected, "{later} events later");
    }
}
