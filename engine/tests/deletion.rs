//! What a delete takes, what refuses it, and what a user may say about a child.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod world;

use converge_domain::resource::{Phase, Reaction, ResourceEvent};
use converge_domain::{AnyEvent, KindRef, Position};
use converge_engine::dispatch::Task;
use converge_engine::gateway_api::{GatewayError, RequestContext};
use serde_json::{Value, json};
use world::{Answer, World, child, composer_kind, depending, flow, leaf_kind, resource};

fn by_spec(task: &Task) -> Answer {
    let spec: Value = serde_json::from_slice(&task.spec).unwrap();
    let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
    match task.reaction {
        Reaction::Compose => Answer::Composed(list("children"), list("edges")),
        _ => Answer::Done(json!({"id": format!("{}-{}", task.kind.kind, task.name)})),
    }
}

async fn served() -> World {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| by_spec(task));
    world
}

fn pair() -> Value {
    json!({
        "children": [child("account", "a", json!({})), child("vpc", "v", json!({}))],
        "edges": [flow(("vpc", "v"), ("account", "a"), "account_id")]
    })
}

fn conflict(error: &GatewayError) -> &str {
    match error {
        GatewayError::Conflict(message) => message,
        other => panic!("not a conflict: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_dependent_in_another_root_refuses_the_delete_and_is_listed() {
    let world = served().await;
    world
        .apply(vec![resource("account", "a", json!({})), depending("vpc", "v", &["account/a"])])
        .await
        .unwrap();
    world.until_ready("vpc", "v").await;
    let head = world.head().await;
    let refused = world.delete_all(&[("account", "a")], false).await.unwrap_err();
    assert_eq!(
        conflict(&refused),
        "resources in other roots depend on it: vpc/v needs account/a; delete these first, or cascade"
    );
    assert_eq!(world.head().await, head, "nothing was stored");
    // In the same request it is no reason.
    let going = world.delete_all(&[("account", "a"), ("vpc", "v")], false).await.unwrap();
    assert_eq!(going, ["account/a", "vpc/v"]);
    world.until_gone("account", "a").await;
    assert!(world.get("vpc", "v").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dependent_that_is_going_away_already_does_not_refuse_the_delete() {
    let mut world = World::new().await;
    world.apply(vec![leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    world.serve(&[("account", 1), ("vpc", 1)], |task, _| match task.reaction {
        Reaction::Teardown if task.kind.kind == "vpc" => {
            Answer::Failed { message: "still attached", terminal: false }
        }
        _ => by_spec(task),
    });
    world
        .apply(vec![resource("account", "a", json!({})), depending("vpc", "v", &["account/a"])])
        .await
        .unwrap();
    world.until_ready("vpc", "v").await;
    world.delete("vpc", "v").await;
    world.delete("account", "a").await;
    assert_eq!(world.why("account", "a").await, "Waits until vpc/v, which depends on it, is gone.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cascade_takes_dependents_in_other_roots_along_and_names_them() {
    let world = served().await;
    world
        .apply(vec![
            resource("account", "a", json!({})),
            depending("vpc", "v", &["account/a"]),
            depending("vpc", "w", &["vpc/v"]),
        ])
        .await
        .unwrap();
    world.until_ready("vpc", "w").await;
    let going = world.delete_all(&[("account", "a")], true).await.unwrap();
    assert_eq!(going, ["account/a", "vpc/v", "vpc/w"]);
    world.until_gone("account", "a").await;
    let story = world.story_after(Position(0)).await;
    let at = |line: &str| story.iter().position(|entry| entry == line).unwrap();
    assert!(at("vpc/w Deleted") < at("vpc/v Deleted") && at("vpc/v Deleted") < at("account/a Deleted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_protected_descendant_refuses_the_delete_up_front_and_is_listed() {
    let world = served().await;
    let mut spec = pair();
    spec["children"][1]["deletion_protection"] = json!(true);
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until_ready("root", "r").await;
    let head = world.head().await;
    let refused = world.delete_all(&[("root", "r")], false).await.unwrap_err();
    let expected =
        "it would take what is protected: vpc/v; apply each with `deletion_protection: false` first";
    assert_eq!(conflict(&refused), expected);
    // It leans on the account, so a delete of that would take it too.
    let refused = world.delete_all(&[("account", "a")], false).await.unwrap_err();
    assert_eq!(conflict(&refused), expected);
    assert_eq!(world.head().await, head, "nothing was stored");
    // Lifted by name, it goes.
    let mut lifted = resource("vpc", "v", json!({}));
    lifted["deletion_protection"] = json!(false);
    world.apply(vec![lifted]).await.unwrap();
    world.delete("root", "r").await;
    world.until_gone("root", "r").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_protected_elsewhere_in_the_root_is_no_reason() {
    let world = served().await;
    let mut spec = pair();
    spec["children"][0]["deletion_protection"] = json!(true);
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until_ready("root", "r").await;
    // The account is protected; the vpc that leans on it may go (and is made anew).
    world.delete("vpc", "v").await;
    world.until("vpc", "v", |state| state.is_none_or(|state| state.deletion.is_some())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_targets_go_or_none() {
    let world = served().await;
    let mut protected = resource("account", "b", json!({}));
    protected["deletion_protection"] = json!(true);
    world.apply(vec![resource("account", "a", json!({})), protected]).await.unwrap();
    world.until_ready("account", "b").await;
    let head = world.head().await;
    world.delete_all(&[("account", "a"), ("account", "b")], false).await.unwrap_err();
    let missing = world.delete_all(&[("account", "a"), ("account", "c")], false).await.unwrap_err();
    assert!(matches!(missing, GatewayError::NotFound(_)), "{missing}");
    assert_eq!(world.head().await, head);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_may_label_and_protect_a_child_and_nothing_else() {
    let world = served().await;
    world.apply(vec![resource("root", "r", pair())]).await.unwrap();
    world.until_ready("root", "r").await;
    let generation = world.get("vpc", "v").await.unwrap().generation;
    let mut named = resource("vpc", "v", json!({}));
    named["labels"] = json!({"user/team": "payments"});
    named["deletion_protection"] = json!(true);
    world.apply(vec![named.clone()]).await.unwrap();
    let head = world.head().await;
    world.apply(vec![named]).await.unwrap();
    assert_eq!(world.head().await, head, "twice is once");

    for forbidden in [
        json!({"spec": {"n": 1}}),
        json!({"labels": {"team": "payments"}}),
        json!({"provider_config_ref": "other"}),
    ] {
        let mut document = resource("vpc", "v", json!({}));
        for (key, value) in forbidden.as_object().unwrap() {
            document[key] = value.clone();
        }
        let refused = world.apply(vec![document]).await.unwrap_err();
        assert_eq!(conflict(&refused), "vpc/v is owned by root/r; change root/r's spec instead");
    }

    // Its composer keeps both when it declares it anew.
    let mut changed = pair();
    changed["children"][1]["labels"] = json!({"tier": "pci"});
    changed["children"][1]["deletion_protection"] = json!(false);
    world.apply(vec![resource("root", "r", changed)]).await.unwrap();
    world.until("vpc", "v", |state| state.is_some_and(|state| state.labels.contains_key("tier"))).await;
    let vpc = world.get("vpc", "v").await.unwrap();
    assert_eq!(vpc.labels.get("user/team").map(String::as_str), Some("payments"));
    assert!(vpc.deletion_protection, "lifted by name only");
    assert_eq!(vpc.generation, generation);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_deleted_with_its_dependents_is_made_anew_by_one_composition() {
    let world = served().await;
    world.apply(vec![resource("root", "r", pair())]).await.unwrap();
    world.until_ready("root", "r").await;
    let (account, vpc) =
        (world.get("account", "a").await.unwrap().id().id, world.get("vpc", "v").await.unwrap().id().id);
    let head = world.head().await;
    world.delete("account", "a").await;
    for (kind, name, old) in [("account", "a", account), ("vpc", "v", vpc)] {
        world
            .until(kind, name, |state| {
                state.is_some_and(|state| state.id().id != old && state.phase() == Phase::Ready)
            })
            .await;
    }
    world.until_ready("root", "r").await;
    let story = world.story_after(head).await;
    let at = |line: &str| story.iter().position(|entry| entry == line).unwrap_or_else(|| panic!("{story:?}"));
    assert!(at("vpc/v Deleted") < at("account/a Deleted"), "{story:?}");
    assert!(at("account/a Deleted") < at("account/a Created"), "{story:?}");
    // Passes before the last node was gone left both alone.
    let created = story.iter().filter(|line| line.ends_with("Created")).count();
    assert_eq!(created, 2, "{story:?}");
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_finalizers_are_stripped_in_reverse_manifest_order() {
    let mut world = World::new().await;
    let mut kind = leaf_kind("account");
    kind["reactions"] = json!([
        {"name": "work", "trigger": "specChange", "emits": ["status"]},
        {"name": "first", "trigger": "deleteRequested", "emits": ["finalizer"], "finalizer": "acme/first"},
        {"name": "second", "trigger": "deleteRequested", "emits": ["finalizer"], "finalizer": "acme/second"}
    ]);
    world.apply(vec![kind]).await.unwrap();
    world.serve(&[("account", 1)], |_, _| Answer::Done(json!({})));
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    world.delete("account", "a").await;
    world.until_gone("account", "a").await;
    let stripped: Vec<String> = world
        .events()
        .await
        .into_iter()
        .filter_map(|stored| match stored.event {
            AnyEvent::Resource(ResourceEvent::FinalizerStripped { finalizer, .. }) => Some(finalizer),
            _ => None,
        })
        .collect();
    assert_eq!(stripped, ["acme/second", "acme/first"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_that_was_never_claimed_goes_without_a_task() {
    let world = World::new().await;
    world.apply(vec![leaf_kind("account")]).await.unwrap();
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.delete("account", "a").await;
    world.until_gone("account", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_20_a_kind_with_live_resources_is_not_deleted_and_some_of_them_are_listed() {
    let world = served().await;
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    let delete =
        async || world.gateway.delete_kind(KindRef::new("account", 1), RequestContext::default()).await;
    assert_eq!(
        conflict(&delete().await.unwrap_err()),
        "kind account/v1 is needed by account/a; delete these first"
    );
    world.delete("account", "a").await;
    world.until_gone("account", "a").await;
    delete().await.unwrap();
    assert!(matches!(delete().await.unwrap_err(), GatewayError::NotFound(_)));
    let unknown = world.apply(vec![resource("account", "b", json!({}))]).await.unwrap_err();
    assert!(unknown.to_string().contains("not known"), "{unknown}");
    // Published again, it is as new.
    world.apply(vec![leaf_kind("account"), resource("account", "b", json!({}))]).await.unwrap();
    world.until_ready("account", "b").await;
}
