//! Smaller rules of applying, rolling up and deleting.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod world;

use converge_domain::document;
use converge_domain::resource::{Gate, Phase, Reaction, ResourceState, Standing};
use converge_domain::{Position, ResourceRef};
use converge_engine::gateway_api::{Action, DeleteRequest, GatewayError, RequestContext};
use serde_json::{Value, json};
use world::{Answer, World, child, composer_kind, depending, flow, leaf_kind, resource};

async fn served() -> World {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| {
        let spec: Value = serde_json::from_slice(&task.spec).unwrap();
        let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
        match task.reaction {
            Reaction::Compose => Answer::Composed(list("children"), list("edges")),
            Reaction::Work if spec["fails"] == true => Answer::Failed { message: "no quota", terminal: true },
            _ => Answer::Done(json!({"id": task.name})),
        }
    });
    world
}

fn is(phase: Phase) -> impl Fn(Option<&ResourceState>) -> bool {
    move |state| state.is_some_and(|state| state.phase() == phase)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_kind_or_version_is_a_clear_error_and_nothing_is_stored() {
    let world = served().await;
    let head = world.head().await;
    let mut version = resource("vpc", "v", json!({}));
    version["kind_version"] = json!(2);
    for (document, says) in [
        (resource("acount", "a", json!({})), "kind acount/v1 is not known; did you mean account/v1?"),
        (version, "kind vpc/v2 is not known; vpc/v1 is. Apply the manifest of version 2 first"),
    ] {
        match world.apply(vec![resource("account", "good", json!({})), document]).await.unwrap_err() {
            GatewayError::Validation(violations) => {
                assert_eq!(violations.len(), 1);
                assert_eq!((violations[0].pointer.as_str(), violations[0].message.as_str()), ("/kind", says));
            }
            other => panic!("not a validation: {other}"),
        }
    }
    assert_eq!(world.head().await, head);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_records_who_asked_under_which_request_and_what_caused_it() {
    let world = served().await;
    let documents = vec![document::parse(resource("account", "a", json!({})), None).unwrap()];
    let context =
        RequestContext { actor: "ada".into(), request_id: "request-7".into(), ..RequestContext::default() };
    world.gateway.apply(documents, context).await.unwrap();
    world.until_ready("account", "a").await;
    let id = world.get("account", "a").await.unwrap().id().id;
    let mut told = Vec::new();
    for stored in world.events().await.iter().filter(|stored| stored.aggregate_id == id.into()) {
        let metadata = |key: &str| stored.metadata.get(key).cloned().unwrap_or_default();
        told.push((stored.event.event_type(), metadata("actor"), metadata("request_id"), metadata("cause")));
    }
    let fact = |event: &str, actor: &str, request: &str, cause: &str| {
        (event.to_owned(), actor.to_owned(), request.to_owned(), cause.to_owned())
    };
    assert_eq!(
        told,
        [
            fact("Created", "ada", "request-7", ""),
            fact("Claimed", "converge", "", "claim"),
            fact("Worked", "converge", "", "record_outcome"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_without_a_rollup_reaction_still_gets_the_readiness_of_its_subtree() {
    let world = served().await;
    let mut plain = composer_kind("plain");
    plain["reactions"].as_array_mut().unwrap().remove(1);
    world.apply(vec![plain]).await.unwrap();
    let mut second = world.second_worker();
    second.serve(&[("plain", 1)], |task, _| match task.reaction {
        Reaction::Compose => {
            let spec: Value = serde_json::from_slice(&task.spec).unwrap();
            Answer::Composed(vec![child("account", "a", spec)], vec![])
        }
        _ => Answer::Done(json!({})),
    });
    world.apply(vec![resource("plain", "p", json!({"fails": true}))]).await.unwrap();
    world.until("plain", "p", is(Phase::Degraded)).await;
    assert!(world.why("plain", "p").await.starts_with("Degraded by account/a"));
    world.apply(vec![resource("plain", "p", json!({}))]).await.unwrap();
    world.until_ready("plain", "p").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_to_a_delete_of_a_wanted_child_says_that_it_comes_again() {
    let world = served().await;
    let spec = json!({"children": [child("account", "a", json!({}))]});
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until_ready("root", "r").await;
    let request = DeleteRequest { targets: vec![ResourceRef::new("account", "a")], cascade: false };
    let answer = world.gateway.delete(request, RequestContext::default()).await.unwrap();
    assert_eq!(
        answer.going[0].notes,
        ["root/r still wants it and will make it anew; change root/r's spec to be rid of it"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_on_a_quarantined_orphaned_or_missing_upstream_is_blocked() {
    let world = served().await;
    let mut graceful = leaf_kind("account");
    graceful["orphan_grace_secs"] = json!(3600);
    world.apply(vec![graceful]).await.unwrap();
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    world.act("account", "a", Action::Quarantine).await.unwrap();
    let waiting =
        vec![depending("vpc", "set-aside", &["account/a"]), depending("vpc", "missing", &["account/nobody"])];
    world.apply(waiting).await.unwrap();
    // An orphan, and a wanted child that leans on it: the composer drops the one and keeps the other's edge nowhere, so the
    // edge is the one from before, held by a dependent that cannot follow.
    let pair = |fails: bool| {
        json!({
            "children": [child("account", "o", json!({})), child("vpc", "v", json!({"fails": fails}))],
            "edges": [flow(("vpc", "v"), ("account", "o"), "account_id")]
        })
    };
    world.apply(vec![resource("root", "r", pair(false))]).await.unwrap();
    world.until_ready("root", "r").await;
    for name in ["set-aside", "missing"] {
        world.until("vpc", name, |state| state.is_some_and(|state| state.gate == Gate::Blocked)).await;
        assert_eq!(world.get("vpc", name).await.unwrap().standing(), Standing::Impaired);
    }
    world.apply(vec![resource("root", "r", json!({"children": []}))]).await.unwrap();
    world.until("account", "o", is(Phase::Orphaned)).await;
    assert_eq!(world.get("account", "o").await.unwrap().standing(), Standing::LeftOut);
    assert!(world.head().await > Position(0));
}
