//! What a composer may do and what becomes of it: conflicts, held and pending prunes, grace, configs, unstable output.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod world;

use converge_domain::resource::{Phase, Reaction, ResourceState, Standing};
use converge_domain::{KindRef, ResourceRef};
use converge_engine::dispatch::Task;
use converge_engine::gateway_api::{Action, GatewayError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use world::{Answer, World, child, composer_kind, flow, leaf_kind, resource};

/// A composer whose spec says what it returns: `{"children": [...], "edges": [...], "configs": [...]}`.
fn by_spec(task: &Task) -> Answer {
    let spec: Value = serde_json::from_slice(&task.spec).unwrap();
    let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
    match task.reaction {
        Reaction::Compose => Answer::Configured(list("children"), list("edges"), list("configs")),
        Reaction::Work | Reaction::Observe => {
            Answer::Done(json!({"id": format!("{}-{}", task.kind.kind, task.name)}))
        }
        Reaction::Rollup | Reaction::Teardown => Answer::Done(json!({})),
    }
}

fn composer_with(kind: &str, knobs: Value) -> Value {
    let mut manifest = composer_kind(kind);
    manifest["reactions"][0]["emits"] = json!(["children", "edges", "configs", "status", "conditions"]);
    for (knob, value) in knobs.as_object().unwrap() {
        manifest[knob] = value.clone();
    }
    manifest
}

async fn served(knobs: Value) -> World {
    let mut world = World::new().await;
    let kinds = vec![composer_with("root", knobs), leaf_kind("account"), leaf_kind("vpc")];
    world.apply(kinds).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| by_spec(task));
    world
}

fn accounts(names: &[&str]) -> Value {
    json!({"children": names.iter().map(|name| child("account", name, json!({}))).collect::<Vec<_>>()})
}

fn is(phase: Phase) -> impl Fn(Option<&ResourceState>) -> bool {
    move |state| state.is_some_and(|state| state.phase() == phase)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_composer_of_a_name_gets_a_conflict_and_the_rest_of_its_children() {
    let world = served(json!({})).await;
    world.apply(vec![resource("root", "first", accounts(&["shared"]))]).await.unwrap();
    world.until_ready("root", "first").await;
    let shared = world.get("account", "shared").await.unwrap();
    let mut second = accounts(&["shared", "own"]);
    second["children"].as_array_mut().unwrap().push(child("vpc", "leaning", json!({})));
    second["edges"] = json!([flow(("vpc", "leaning"), ("account", "shared"), "account_id")]);
    world.apply(vec![resource("root", "second", second)]).await.unwrap();
    world.until("root", "second", is(Phase::Degraded)).await;
    world.until_ready("account", "own").await;

    let conflict = world.condition("root", "second", "Conflict").await.unwrap();
    assert!(conflict.contains("account/shared"), "{conflict}");
    assert_eq!(
        world.why("root", "second").await,
        "Degraded by vpc/leaning (Reconciling: Blocked by account/shared, whose name somebody else holds)."
    );
    // What leans on the child is blocked, however well the other's is.
    assert_eq!(world.get("vpc", "leaning").await.unwrap().standing(), Standing::Impaired);
    // The first owner's child is as it was.
    assert_eq!(world.get("account", "shared").await.unwrap().sequence, shared.sequence);
    world.until_ready("root", "first").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_clears_itself_when_the_name_is_freed() {
    let world = served(json!({})).await;
    world.apply(vec![resource("root", "first", accounts(&["shared"]))]).await.unwrap();
    world.until_ready("root", "first").await;
    let mut second = accounts(&["shared"]);
    second["children"].as_array_mut().unwrap().push(child("vpc", "leaning", json!({})));
    second["edges"] = json!([flow(("vpc", "leaning"), ("account", "shared"), "account_id")]);
    world.apply(vec![resource("root", "second", second)]).await.unwrap();
    world.until("root", "second", is(Phase::Degraded)).await;
    world.delete("root", "first").await;
    world.until_ready("root", "second").await;
    assert_eq!(world.condition("root", "second", "Conflict").await, None);
    let second = world.get("root", "second").await.unwrap().id().id;
    assert_eq!(world.get("account", "shared").await.unwrap().id().owner(), Some(second));
    let leaning = world.get("vpc", "leaning").await.unwrap();
    assert_eq!(leaning.effective_spec(), json!({"account_id": "account-shared"}));
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_that_stays_appends_nothing_when_it_is_composed_again() {
    let world = served(json!({"resync_recomposes": true})).await;
    world.apply(vec![resource("account", "mine", json!({}))]).await.unwrap();
    world.until_ready("account", "mine").await;
    world.apply(vec![resource("root", "r", accounts(&["mine"]))]).await.unwrap();
    world.until("root", "r", is(Phase::Degraded)).await;
    let conflict = world.condition("root", "r", "Conflict").await.unwrap();
    assert_eq!(conflict, "account/mine was declared by a user");
    let before = world.get("account", "mine").await.unwrap().sequence;
    let composed = world.get("root", "r").await.unwrap().composed;
    world.act("root", "r", Action::Resync).await.unwrap();
    world
        .until("root", "r", |state| {
            state.is_some_and(|state| state.composed != composed && state.phase() == Phase::Degraded)
        })
        .await;
    assert_eq!(world.get("account", "mine").await.unwrap().sequence, before);
    assert_eq!(world.condition("root", "r", "UnstableComposition").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prune_above_the_share_is_held_until_it_is_confirmed() {
    let world = served(json!({"prune_share_max": 0.5})).await;
    world.apply(vec![resource("root", "r", accounts(&["a", "b", "c", "d"]))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.apply(vec![resource("root", "r", accounts(&["a"]))]).await.unwrap();
    world.until("root", "r", |state| state.is_some_and(|state| state.prune_held.is_some())).await;
    // Composed, and its children stay wanted: it is Ready with a condition.
    world.until_ready("root", "r").await;
    let held = world.get("root", "r").await.unwrap().prune_held.clone().unwrap();
    assert_eq!((held.children, held.of), (3, 4));
    let shown = world.condition("root", "r", "PruneHeld").await.unwrap();
    assert!(shown.contains(&held.digest), "{shown}");
    for name in ["b", "c", "d"] {
        assert!(world.get("account", name).await.unwrap().dropped.is_none());
    }

    let wrong = world.act("root", "r", Action::ConfirmPrune { digest: "00".into() }).await.unwrap_err();
    assert!(matches!(&wrong, GatewayError::Conflict(why) if why.contains(&held.digest)), "{wrong}");
    world.act("root", "r", Action::ConfirmPrune { digest: held.digest }).await.unwrap();
    for name in ["b", "c", "d"] {
        world.until_gone("account", name).await;
    }
    world.until_ready("root", "r").await;
    assert_eq!(world.condition("root", "r", "PruneHeld").await, None);
    // Up to the share nothing is held.
    world.apply(vec![resource("root", "r", accounts(&["a", "e"]))]).await.unwrap();
    world.until_ready("account", "e").await;
    world.apply(vec![resource("root", "r", accounts(&["a"]))]).await.unwrap();
    world.until_gone("account", "e").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_dependent_that_failed_keeps_what_it_leaned_on_and_both_are_named() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    let broken = Arc::new(AtomicBool::new(false));
    let breaks = broken.clone();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], move |task, _| {
        if task.kind.kind == "vpc" && task.reaction == Reaction::Work && breaks.load(Ordering::SeqCst) {
            return Answer::Failed { message: "no more networks", terminal: true };
        }
        by_spec(task)
    });
    let spec = |account: &str| {
        json!({
            "children": [child("account", account, json!({})), child("vpc", "v", json!({}))],
            "edges": [flow(("vpc", "v"), ("account", account), "account_id")]
        })
    };
    world.apply(vec![resource("root", "r", spec("old"))]).await.unwrap();
    world.until_ready("root", "r").await;
    broken.store(true, Ordering::SeqCst);
    world.apply(vec![resource("root", "r", spec("new"))]).await.unwrap();
    world.until("root", "r", |state| state.is_some_and(|state| !state.prune_pending.is_empty())).await;
    let pending = world.condition("root", "r", "PrunePending").await.unwrap();
    assert_eq!(pending, "account/old stays, because vpc/v does not follow");
    assert!(world.get("account", "old").await.unwrap().deletion.is_none());
    // The operator mends it and asks for another try: it follows, and what it leaned on goes.
    broken.store(false, Ordering::SeqCst);
    world.act("vpc", "v", Action::Resync).await.unwrap();
    world.until_gone("account", "old").await;
    world.until("root", "r", |state| state.is_some_and(|state| state.prune_pending.is_empty())).await;
    world.until_ready("root", "r").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_protected_child_that_its_composer_drops_is_kept_and_the_composer_says_so() {
    let world = served(json!({})).await;
    let mut spec = accounts(&["a", "b"]);
    spec["children"][1]["deletion_protection"] = json!(true);
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until_ready("root", "r").await;
    world.apply(vec![resource("root", "r", accounts(&["a"]))]).await.unwrap();
    world.until("root", "r", |state| state.is_some_and(|state| !state.prune_pending.is_empty())).await;
    let pending = world.condition("root", "r", "PrunePending").await.unwrap();
    assert_eq!(pending, "account/b stays, because it is protected against deletion");
    assert!(world.get("account", "b").await.unwrap().deletion.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orphan_goes_when_its_grace_is_over_and_that_is_a_fact() {
    let world = served(json!({})).await;
    let mut graceful = leaf_kind("account");
    graceful["orphan_grace_secs"] = json!(1);
    world.apply(vec![graceful]).await.unwrap();
    world.apply(vec![resource("root", "r", accounts(&["a"]))]).await.unwrap();
    world.until_ready("root", "r").await;
    let head = world.head().await;
    world.apply(vec![resource("root", "r", accounts(&[]))]).await.unwrap();
    world.until_gone("account", "a").await;
    let story = world.story_after(head).await;
    let at = |line: &str| story.iter().position(|entry| entry == line).unwrap_or_else(|| panic!("{story:?}"));
    assert!(at("account/a Dropped") < at("account/a GraceEnded"), "{story:?}");
    assert!(at("account/a GraceEnded") < at("account/a DeletionRequested"), "{story:?}");
    assert!(at("root/r Composed") < at("account/a DeletionRequested"), "{story:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_roots_orphans_go_with_it_now() {
    let world = served(json!({})).await;
    let mut graceful = leaf_kind("account");
    graceful["orphan_grace_secs"] = json!(3600);
    world.apply(vec![graceful]).await.unwrap();
    world.apply(vec![resource("root", "r", accounts(&["a"]))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.apply(vec![resource("root", "r", accounts(&[]))]).await.unwrap();
    world.until("account", "a", is(Phase::Orphaned)).await;
    world.until_ready("root", "r").await;
    world.delete("root", "r").await;
    world.until_gone("root", "r").await;
    assert!(world.get("account", "a").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_composer_that_varies_its_output_is_reported_and_its_set_does_not_grow() {
    let mut world = World::new().await;
    let kinds = vec![composer_with("root", json!({"resync_recomposes": true})), leaf_kind("account")];
    world.apply(kinds).await.unwrap();
    let clock = AtomicU64::new(0);
    world.serve(&[("root", 1), ("account", 1)], move |task, _| match task.reaction {
        Reaction::Compose => {
            let name = format!("a-{}", clock.fetch_add(1, Ordering::SeqCst));
            Answer::Composed(vec![child("account", &name, json!({}))], vec![])
        }
        _ => Answer::Done(json!({})),
    });
    world.apply(vec![resource("root", "r", json!({}))]).await.unwrap();
    world.until_ready("root", "r").await;
    for pass in 1..=3_u64 {
        world.act("root", "r", Action::Resync).await.unwrap();
        let (gone, made) = (format!("a-{}", pass - 1), format!("a-{pass}"));
        world.until_gone("account", &gone).await;
        world.until_ready("account", &made).await;
        world.until_ready("root", "r").await;
        let reported = world.condition("root", "r", "UnstableComposition").await;
        assert_eq!(reported.is_some(), pass >= 2, "after {pass}: {reported:?}");
        if let Some(message) = reported {
            assert!(message.contains(&format!("account/{made}")), "{message}");
        }
    }
    // An edit begins anew.
    world.apply(vec![resource("root", "r", json!({"n": 2}))]).await.unwrap();
    world.until_ready("account", "a-4").await;
    world.until_ready("root", "r").await;
    assert_eq!(world.condition("root", "r", "UnstableComposition").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_composer_that_asks_for_it_composes_again_when_its_children_changed_and_then_stops() {
    let mut world = World::new().await;
    let kinds = vec![
        composer_with("root", json!({"recompose_on_children": true})),
        leaf_kind("account"),
        leaf_kind("vpc"),
    ];
    world.apply(kinds).await.unwrap();
    // The vpc takes its account's id from what was observed: there is none on the first pass.
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, input| match task.reaction {
        Reaction::Compose => {
            let mut children = vec![child("account", "a", json!({}))];
            let account = input.iter().find(|item| item["kind"] == "account");
            if let Some(id) = account.and_then(|item| item["status"]["id"].as_str()) {
                children.push(child("vpc", "v", json!({"seen": id})));
            }
            Answer::Composed(children, vec![])
        }
        _ => by_spec(task),
    });
    world.apply(vec![resource("root", "r", json!({}))]).await.unwrap();
    world.until_ready("vpc", "v").await;
    world.until_ready("root", "r").await;
    let vpc = world.get("vpc", "v").await.unwrap();
    assert_eq!(*vpc.spec, json!({"seen": "account-a"}));
    // It settles: the same children again are no reason.
    let composed = world.tasks_of("root/r").iter().filter(|reaction| **reaction == Reaction::Compose).count();
    assert_eq!(composed, 3, "without the account, with it, and once more over the vpc");
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn provider_configs_of_a_composer_come_before_its_children_and_go_after_them() {
    let world = served(json!({})).await;
    let spec = |configs: Value| {
        let mut special = child("account", "a", json!({}));
        special["provider_config_ref"] = json!("special");
        json!({"children": [special], "configs": configs})
    };
    let config = json!({"name": "special", "kind": "account", "kind_version": 1, "spec": {"n": 1}});
    world.apply(vec![resource("root", "r", spec(json!([config])))]).await.unwrap();
    world.until_ready("root", "r").await;
    let registry = world.engine.registry();
    let root = world.get("root", "r").await.unwrap().id().id;
    assert_eq!(registry.config("special").unwrap().owner, Some(root));
    // It is its composer's alone.
    let mut taken = config.clone();
    taken["type"] = json!("providerconfig");
    taken["spec"] = json!({"n": 2});
    let refused = world.apply(vec![taken]).await.unwrap_err();
    assert!(matches!(refused, GatewayError::Conflict(_)), "{refused}");

    let head = world.head().await;
    world.delete("root", "r").await;
    world.until_gone("root", "r").await;
    // The last fact of all is the end of the config.
    let mut follower = world.log.tail().follow(head);
    let ended = async {
        loop {
            let events = follower.next().await.unwrap();
            if events.iter().any(|event| {
                event.event.event_type() == "Deleted" && event.aggregate_type.as_str() == "provider_config"
            }) {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), ended).await.unwrap();
    let gone: Vec<String> = world
        .events()
        .await
        .iter()
        .filter(|event| event.position > head && event.event.event_type() == "Deleted")
        .map(|event| event.aggregate_type.as_str().to_owned())
        .collect();
    assert_eq!(gone, ["resource", "resource", "provider_config"]);
    let names = world.store.names(&[ResourceRef::new("providerconfig", "special")]).await.unwrap();
    assert_eq!(names, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_that_a_composer_no_longer_lists_goes_when_what_it_dropped_is_gone() {
    let world = served(json!({})).await;
    let config = |name: &str| json!({"name": name, "kind": "account", "kind_version": 1, "spec": {}});
    let spec = |names: &[&str]| {
        let mut spec = accounts(names);
        spec["configs"] = names.iter().map(|name| config(name)).collect();
        spec
    };
    world.apply(vec![resource("root", "r", spec(&["a", "b"]))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.apply(vec![resource("root", "r", spec(&["a"]))]).await.unwrap();
    world.until_gone("account", "b").await;
    let mut follower = world.log.tail().follow(converge_domain::Position(0));
    let names = [ResourceRef::new("providerconfig", "a"), ResourceRef::new("providerconfig", "b")];
    let ended = async {
        while world.store.names(&names).await.unwrap().len() > 1 {
            follower.next().await.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), ended).await.unwrap();
    assert_eq!(world.store.names(&names).await.unwrap()[0].0, names[0]);
    world.until_ready("root", "r").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_composer_cannot_set_a_kinds_default_config() {
    let world = served(json!({})).await;
    let config =
        json!({"name": "mine", "kind": "account", "kind_version": 1, "is_default": true, "spec": {}});
    world.apply(vec![resource("root", "r", json!({"configs": [config]}))]).await.unwrap();
    world.until("root", "r", is(Phase::Failed)).await;
    let why = world.why("root", "r").await;
    assert!(why.contains("default config"), "{why}");
    assert!(world.engine.registry().default_config(&KindRef::new("account", 1)).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_generation_waits_for_the_running_pass_and_skips_its_removals() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account")]).await.unwrap();
    let (begun, mut running) = tokio::sync::mpsc::channel(1);
    let (go_on, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    world.serve(&[("root", 1)], move |task, _| {
        let spec: Value = serde_json::from_slice(&task.spec).unwrap();
        if task.reaction == Reaction::Compose && spec["held"] == true {
            begun.try_send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
        }
        by_spec(task)
    });
    let mut leaves = world.second_worker();
    leaves.serve(&[("account", 1)], |task, _| by_spec(task));
    world.apply(vec![resource("root", "r", accounts(&["a", "b"]))]).await.unwrap();
    world.until_ready("root", "r").await;
    let kept = world.get("account", "b").await.unwrap().id().id;
    let head = world.head().await;

    // A composition that drops b is in a worker's hands when an edit wants b again.
    let mut without = accounts(&["a"]);
    without["held"] = json!(true);
    world.apply(vec![resource("root", "r", without)]).await.unwrap();
    running.recv().await.unwrap();
    world.apply(vec![resource("root", "r", accounts(&["a", "b"]))]).await.unwrap();
    go_on.send(()).unwrap();
    world
        .until("root", "r", |state| {
            state.is_some_and(|state| state.generation.0 == 3 && state.phase() == Phase::Ready)
        })
        .await;
    world.until_ready("account", "b").await;
    let story = world.story_after(head).await;
    let at = |line: &str| story.iter().position(|entry| entry == line).unwrap_or_else(|| panic!("{story:?}"));
    assert!(at("account/b Dropped") < at("root/r Composed"), "the older pass ran to its end: {story:?}");
    assert!(at("root/r Composed") < at("account/b Readopted"), "{story:?}");
    assert!(!story.iter().any(|line| line == "account/b DeletionRequested"), "{story:?}");
    assert_eq!(world.get("account", "b").await.unwrap().id().id, kept, "nothing was destroyed");
    world.check_invariants().await;
}
