//! Queries and mutations over real HTTP.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use converge_domain::document::Document;
use serde_json::{Value, json};
use std::time::Duration;
use support::World;

const APPLY: &str = "mutation($docs: [JSON!]!, $id: ID) { apply(documents: $docs, commandId: $id) {
    position results { type kind name id verb revision generation warnings } } }";

fn document(name: &str) -> Value {
    json!({"kind": "vpc", "kind_version": 1, "name": name, "spec": {}})
}

async fn a_world_with_trees() -> World {
    let mut world = World::new().await;
    world.story = support::story::a_varied_story();
    world.sync().await;
    world
}

#[tokio::test]
async fn a_resource_is_found_by_name_and_by_id_and_the_answer_says_its_position() {
    let world = a_world_with_trees().await;
    let query = "query($id: ID, $kind: String, $name: String) { resource(id: $id, kind: $kind, name: $name) {
        id kind kindVersion name labels spec effectiveSpec status phase conditions { type status }
        generation owner { name owner { name } } root why events { eventType name } claim { worker } } }";
    let answer = world.ask(query, json!({"kind": "account", "name": "a00"})).await;
    assert_eq!(answer["extensions"]["position"], json!(world.story.events.len().to_string()), "{answer}");
    let by_name = &answer["data"]["resource"];
    assert_eq!(by_name["phase"], "Ready");
    assert_eq!(by_name["generation"], "1");
    assert_eq!(by_name["labels"], json!({"n": "0"}));
    assert_eq!(by_name["status"], json!({"done": true}));
    assert_eq!(by_name["owner"], json!({"name": "z", "owner": null}));
    assert_eq!(by_name["why"], "");
    assert_eq!(by_name["events"][2], json!({"eventType": "Worked", "name": "a00"}), "newest last");
    let conditions: Vec<_> = by_name["conditions"].as_array().unwrap().iter().map(|c| &c["type"]).collect();
    assert!(conditions.contains(&&json!("Synced")) && conditions.contains(&&json!("Ready")));
    let by_id = world.data(query, json!({"id": by_name["id"]})).await;
    assert_eq!(&by_id["resource"], by_name);
    let node = world
        .data(
            "query($id: ID!) { node(id: $id) { id ... on Resource { name } } }",
            json!({"id": by_name["id"]}),
        )
        .await;
    assert_eq!(node["node"]["name"], "a00");
    assert_eq!(world.data(query, json!({"kind": "vpc", "name": "none"})).await["resource"], Value::Null);
    let waiting = world.data(query, json!({"kind": "vpc", "name": "lone"})).await;
    assert!(waiting["resource"]["why"].as_str().unwrap().ends_with("waits for a worker."));
    assert_eq!(waiting["resource"]["claim"]["worker"], "worker-1");
}

#[tokio::test]
async fn lists_page_with_cursors_and_show_children_and_owners() {
    let world = a_world_with_trees().await;
    let query = "query($after: String) { resources(first: 4, after: $after) {
        nodes { kind name owner { name } children(first: 2) { nodes { name } pageInfo { hasNextPage } } }
        edges { cursor node { name } } pageInfo { hasNextPage endCursor hasPreviousPage } position } }";
    let (mut names, mut after) = (Vec::new(), Value::Null);
    loop {
        let page = world.data(query, json!({"after": after})).await["resources"].take();
        assert_eq!(page["position"], json!(world.story.events.len().to_string()));
        for node in page["nodes"].as_array().unwrap() {
            names.push(format!("{}/{}", node["kind"].as_str().unwrap(), node["name"].as_str().unwrap()));
            if node["kind"] == "zone" {
                assert_eq!(node["children"]["nodes"], json!([{"name": "a00"}, {"name": "a01"}]));
                assert_eq!(node["children"]["pageInfo"]["hasNextPage"], true);
            }
            if node["kind"] == "account" {
                assert_eq!(node["owner"]["name"], "z");
            }
        }
        after = page["pageInfo"]["endCursor"].clone();
        if page["pageInfo"]["hasNextPage"] == false {
            break;
        }
    }
    assert_eq!(names.len(), 16);
    assert!(names.is_sorted(), "{names:?}");
}

#[tokio::test]
async fn filters_trees_counts_and_configs_answer() {
    let world = a_world_with_trees().await;
    let ready = world
        .data("{ resources(filter: {phase: [Ready], kind: \"vpc\"}) { nodes { name } } }", json!({}))
        .await;
    assert_eq!(ready["resources"]["nodes"], json!([{"name": "deep"}]));
    let labelled = world
        .data(
            "query($l: JSON) { resources(filter: {labels: $l}) { nodes { name } } }",
            json!({"l": {"n": "5"}}),
        )
        .await;
    assert_eq!(labelled["resources"]["nodes"], json!([{"name": "a05"}]));
    let tree = world
        .data("{ tree(kind: \"zone\", name: \"z\") { nodes { depth resource { name } } pageInfo { hasNextPage } } }", json!({}))
        .await;
    let nodes = tree["tree"]["nodes"].as_array().unwrap();
    assert_eq!(nodes[0], json!({"depth": 0, "resource": {"name": "z"}}));
    assert_eq!(nodes.last().unwrap(), &json!({"depth": 2, "resource": {"name": "deep"}}));
    assert_eq!(nodes.len(), 15);
    let summary = world.data("{ summary { position counts { kind phase count } } }", json!({})).await;
    let total: i64 =
        summary["summary"]["counts"].as_array().unwrap().iter().map(|c| c["count"].as_i64().unwrap()).sum();
    assert_eq!(total, 16);
    let none = world
        .data(
            "{ kinds { kind } kind(kind: \"a\", kindVersion: 1) { kind } providerConfigs { name } }",
            json!({}),
        )
        .await;
    assert_eq!(none, json!({"kinds": [], "kind": null, "providerConfigs": []}));
}

#[tokio::test]
async fn events_page_through_the_log_and_through_one_name_past_its_bearers_end() {
    let world = a_world_with_trees().await;
    let query = "query($filter: EventFilter, $after: Position, $first: Int) {
        events(filter: $filter, after: $after, first: $first) {
            nodes { position kind name eventType sequence metadata payload } endPosition hasMore position } }";
    let walk = async |filter: Value, first: i32| {
        let (mut seen, mut after) = (Vec::new(), json!("0"));
        loop {
            let variables = json!({"filter": filter, "after": after, "first": first});
            let page = world.data(query, variables).await["events"].take();
            seen.extend(page["nodes"].as_array().unwrap().clone());
            after = page["endPosition"].clone();
            if page["hasMore"] == false {
                return seen;
            }
        }
    };
    let all = walk(Value::Null, 7).await;
    let positions: Vec<u64> = all.iter().map(|e| e["position"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(positions, (1..=world.story.events.len() as u64).collect::<Vec<_>>());
    assert!(all.iter().all(|event| event["name"].is_string() && event["metadata"]["actor"] == "storyteller"));
    assert_eq!(all[0]["payload"]["Created"]["name"], "z");

    // Two resources bore this name, the first is gone.
    let expected: Vec<_> =
        all.iter().filter(|e| e["name"] == "a03" && e["kind"] == "account").cloned().collect();
    assert_eq!(expected.iter().filter(|e| e["eventType"] == "Created").count(), 2);
    for first in [1, 2, 100] {
        assert_eq!(
            walk(json!({"kind": "account", "name": "a03"}), first).await,
            expected,
            "pages of {first}"
        );
    }
    let of_kind: Vec<_> = all.iter().filter(|e| e["kind"] == "vpc").cloned().collect();
    assert_eq!(walk(json!({"kind": "vpc"}), 2).await, of_kind);
}

#[tokio::test]
async fn an_apply_reaches_the_engine_with_every_digit_and_answers_for_each_document() {
    let world = World::new().await;
    let body = json!({"query": APPLY, "variables": {"docs": [], "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}})
        .to_string()
        .replace(
            "[]",
            r#"[{"kind": "vpc", "kind_version": 1, "name": "a", "spec": {"big": 18446744073709551615, "f": 1.10, "n": null}}]"#,
        );
    let answer = world.ask_raw(&body).await;
    let payload = &answer["data"]["apply"];
    assert_eq!(payload["position"], "42", "{answer}");
    assert_eq!(payload["results"][0]["verb"], "created");
    assert_eq!(payload["results"][0]["generation"], (u64::MAX >> 1).to_string());
    let applied = world.gateway.applied.lock().unwrap();
    let (documents, context) = &applied[0];
    let Document::Resource(resource) = &documents[0] else { panic!("{documents:?}") };
    assert_eq!(resource.spec, json!({"big": u64::MAX, "f": 1.1, "n": null}));
    assert_eq!(context.actor, "anonymous");
    assert_eq!(context.command_id.unwrap().to_string(), "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
}

#[tokio::test]
async fn a_document_that_cannot_be_kept_as_written_is_refused_by_document_and_pointer() {
    let world = World::new().await;
    let docs = r#"[{"kind": "vpc", "kind_version": 1, "name": "a"},
        {"kind": "vpc", "kind_version": 1, "name": "b", "spec": {"n": 1e400, "d": 1, "d": 2, "z": "\u0000"}}]"#;
    let body = json!({"query": APPLY, "variables": {"docs": "DOCS"}}).to_string().replace("\"DOCS\"", docs);
    let answer = world.ask_raw(&body).await;
    let error = &answer["errors"][0];
    assert_eq!(error["extensions"]["code"], "VALIDATION", "{answer}");
    let found: Vec<_> = error["extensions"]["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["document"].as_u64().unwrap(), v["pointer"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [(1, "/spec/n"), (1, "/spec/d"), (1, "/spec/z")]);
    assert!(world.gateway.applied.lock().unwrap().is_empty(), "nothing reached the engine");
}

#[tokio::test]
async fn faults_of_documents_are_all_told_with_their_document() {
    let world = World::new().await;
    let answer =
        world.ask(APPLY, json!({"docs": [document("ok"), {"kind": "vpc"}, {"type": "nonsense"}]})).await;
    let violations = answer["errors"][0]["extensions"]["violations"].as_array().unwrap();
    let documents: std::collections::BTreeSet<_> =
        violations.iter().map(|v| v["document"].as_u64().unwrap()).collect();
    assert_eq!(documents, [1, 2].into(), "{answer}");
}

#[tokio::test]
async fn every_error_carries_its_code() {
    let mut world = World::with(|state| state.limits.min_position_wait = Duration::from_millis(50)).await;
    world.story.create("vpc", "a", None);
    world.sync().await;
    let delete =
        "mutation($name: String!) { delete(kind: \"vpc\", name: $name) { position id already notes } }";
    assert_eq!(world.data(delete, json!({"name": "a"})).await["delete"]["already"], true);
    for (name, code) in [
        ("conflict", "CONFLICT"),
        ("unavailable", "UNAVAILABLE"),
        ("missing", "NOT_FOUND"),
        ("invalid", "VALIDATION"),
    ] {
        assert_eq!(world.code(delete, json!({"name": name})).await, code);
        assert_eq!(world.code(APPLY, json!({"docs": [document(name)]})).await, code);
    }
    let many: Vec<_> = (0..1001).map(|n| document(&format!("d{n}"))).collect();
    assert_eq!(world.code(APPLY, json!({"docs": many})).await, "BAD_REQUEST");
    assert_eq!(world.code(APPLY, json!({"docs": [document("a")], "id": "no uuid"})).await, "BAD_REQUEST");
    for query in [
        "mutation { apply(documents: [{kind: \"vpc\", name: \"a\"}]) { position } }",
        "{ resource { id } }",
        "{ resource(id: \"nonsense\") { id } }",
        "{ resources(first: 1001) { position } }",
        "{ resources(first: -1) { position } }",
        "{ resources(after: \"nonsense\") { position } }",
        "{ resources(filter: {owner: \"nonsense\"}) { position } }",
        "{ resources(minPosition: \"2\") { position } }",
        "{ resource(kind: \"vpc\", name: \"a\", minPosition: \"2\") { id } }",
    ] {
        assert_eq!(world.code(query, json!({})).await, "BAD_REQUEST", "{query}");
    }
}

#[tokio::test]
async fn a_read_waits_for_the_position_it_was_given() {
    let mut world = World::new().await;
    world.story.create("vpc", "a", None);
    let end = world.append().await;
    let query = "query($p: Position) { resources(minPosition: $p) { nodes { name } position } }";
    let answer = world.data(query, json!({"p": end.to_string()})).await;
    assert_eq!(answer["resources"], json!({"nodes": [{"name": "a"}], "position": "1"}));
}

#[tokio::test]
async fn a_read_of_a_list_that_lags_behind_its_position_says_so_and_heads_do_not_lag() {
    let mut world = World::with(|state| state.limits.min_position_wait = Duration::from_millis(50)).await;
    world.freeze.cancel();
    world.story.create("vpc", "a", None);
    let end = world.append().await.to_string();
    let list = "query($p: Position) { resources(minPosition: $p) { position } }";
    assert_eq!(world.code(list, json!({"p": end})).await, "UNAVAILABLE");
    let head = "query($p: Position) { resource(kind: \"vpc\", name: \"a\", minPosition: $p) { name } }";
    assert_eq!(world.data(head, json!({"p": end})).await["resource"]["name"], "a");
}
