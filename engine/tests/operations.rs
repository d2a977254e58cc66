//! What happens to a world while it converges: edits, deletes, restarts, missing things that come later.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod world;

use converge_domain::resource::{Phase, Reaction, ResourceEvent};
use converge_domain::{AnyEvent, Position};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use world::{Answer, World, child, composer_kind, flow, leaf_kind, resource};

/// A composer whose spec says what it returns: `{"children": [...], "edges": [...]}`.
fn by_spec(task: &converge_engine::dispatch::Task) -> Answer {
    let spec: Value = serde_json::from_slice(&task.spec).unwrap();
    let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
    match task.reaction {
        Reaction::Compose => Answer::Composed(list("children"), list("edges")),
        Reaction::Work | Reaction::Observe => {
            Answer::Done(json!({"id": format!("{}-{}", task.kind.kind, task.name)}))
        }
        Reaction::Rollup | Reaction::Teardown => Answer::Done(json!({})),
    }
}

async fn served() -> World {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| by_spec(task));
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_holds_at_every_event() {
    let mut world = World::new().await;
    let mut kind = leaf_kind("account");
    kind["max_inflight"] = json!(2);
    world.apply(vec![kind]).await.unwrap();
    world.serve(&[("account", 1)], |_, _| Answer::Done(json!({})));
    let names: Vec<String> = (0..20).map(|n| format!("a{n}")).collect();
    world.apply(names.iter().map(|name| resource("account", name, json!({}))).collect()).await.unwrap();
    for name in &names {
        world.until_ready("account", name).await;
    }
    let mut live = HashSet::new();
    for stored in world.events().await {
        match stored.event {
            AnyEvent::Resource(ResourceEvent::Claimed(_)) => live.insert(stored.aggregate_id),
            AnyEvent::Resource(ResourceEvent::Worked(_)) => live.remove(&stored.aggregate_id),
            _ => false,
        };
        assert!(live.len() <= 2, "{} claims are live at {}", live.len(), stored.position);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_provider_config_is_waited_for_and_named() {
    let world = served().await;
    let mut wanting = resource("account", "a", json!({}));
    wanting["provider_config_ref"] = json!("special");
    world.apply(vec![wanting]).await.unwrap();
    assert_eq!(world.why("account", "a").await, "Waits for provider config special, which does not exist.");
    let config = json!({"type": "providerconfig", "name": "special", "kind": "account", "kind_version": 1, "spec": {}});
    world.apply(vec![config]).await.unwrap();
    world.until_ready("account", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_renamed_in_one_composition_is_made_anew_then_its_dependents_follow_then_the_old_one_goes()
 {
    let world = served().await;
    let spec = |account: &str| {
        json!({
            "children": [child("account", account, json!({})), child("vpc", "v", json!({}))],
            "edges": [flow(("vpc", "v"), ("account", account), "account_id")]
        })
    };
    world.apply(vec![resource("root", "r", spec("old"))]).await.unwrap();
    world.until_ready("root", "r").await;
    let head = world.head().await;
    world.apply(vec![resource("root", "r", spec("new"))]).await.unwrap();
    world.until_gone("account", "old").await;
    world.until_ready("root", "r").await;
    let vpc = world.get("vpc", "v").await.unwrap();
    assert_eq!(vpc.effective_spec(), json!({"account_id": "account-new"}));
    let story = world.story_after(head).await;
    let last = |line: &str| {
        story.iter().rposition(|entry| entry == line).unwrap_or_else(|| panic!("{line} in {story:?}"))
    };
    assert!(last("account/new Worked") < last("vpc/v Worked"));
    assert!(last("vpc/v Worked") < last("account/old DeletionRequested"), "{story:?}");
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_child_of_a_kind_with_grace_is_kept_and_adopted_again_with_nothing_destroyed() {
    let world = served().await;
    let mut graceful = leaf_kind("account");
    graceful["orphan_grace_secs"] = json!(30);
    world.apply(vec![graceful]).await.unwrap();
    let with = json!({"children": [child("account", "a", json!({}))]});
    world.apply(vec![resource("root", "r", with.clone())]).await.unwrap();
    world.until_ready("root", "r").await;
    let id = world.get("account", "a").await.unwrap().id().id;
    world.apply(vec![resource("root", "r", json!({"children": []}))]).await.unwrap();
    world.until("account", "a", |state| state.is_some_and(|state| state.phase() == Phase::Orphaned)).await;
    world.until_ready("root", "r").await;
    assert!(world.why("account", "a").await.contains("no longer wants it"));
    let tasks = world.tasks.lock().unwrap().len();
    world.apply(vec![resource("root", "r", with)]).await.unwrap();
    world.until_ready("account", "a").await;
    world.until_ready("root", "r").await;
    assert_eq!(world.get("account", "a").await.unwrap().id().id, id);
    let later = world.tasks.lock().unwrap()[tasks..].to_vec();
    assert!(later.iter().all(|(name, _, _)| name == "root/r"), "the child got no task: {later:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_deleted_under_its_composer_is_made_anew() {
    let world = served().await;
    let spec = json!({"children": [child("account", "a", json!({})), child("account", "b", json!({}))]});
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until_ready("root", "r").await;
    let id = world.get("account", "a").await.unwrap().id().id;
    world.delete("account", "a").await;
    world
        .until("account", "a", |state| {
            state.is_some_and(|state| state.id().id != id && state.phase() == Phase::Ready)
        })
        .await;
    world.until_ready("root", "r").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_deleted_at_any_moment_of_its_making_is_gone_in_the_end() {
    let children: Vec<Value> = (0..30).map(|n| child("account", &format!("a{n}"), json!({}))).collect();
    let spec = json!({ "children": children });
    for wait in [0, 1, 2, 3, 10, 33, 40, 60, 80, 90] {
        let world = served().await;
        let start = world.head().await;
        world.apply(vec![resource("root", "r", spec.clone())]).await.unwrap();
        let mut follower = world.log.tail().follow(start);
        let mut seen = 0;
        while seen < wait {
            seen += follower.next().await.unwrap().len();
        }
        world.delete("root", "r").await;
        world.until_gone("root", "r").await;
        world.check_invariants().await;
        let story = world.story_after(Position(0)).await;
        let count = |event: &str| story.iter().filter(|line| line.ends_with(event)).count();
        assert_eq!(count(" Created"), count(" Deleted"), "after {wait} events");
        assert!(story.last().unwrap().starts_with("root/r "));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_ends_half_way_is_continued_by_the_next() {
    let world = served().await;
    let children: Vec<Value> = (0..50).map(|n| child("account", &format!("a{n}"), json!({}))).collect();
    let spec = json!({ "children": children });
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until("account", "a7", |state| state.is_some_and(|state| state.phase() == Phase::Ready)).await;
    let store = world.end().await;

    let mut next = World::over(store).await;
    next.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| by_spec(task));
    next.until_ready("root", "r").await;
    next.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_workers_tasks_are_dispatched_again_under_a_higher_epoch_and_the_same_key() {
    let mut world = World::new().await;
    world.apply(vec![leaf_kind("account")]).await.unwrap();
    // A first worker takes the task and dies with it.
    let claimed = world
        .dispatch
        .claim(converge_engine::dispatch::ClaimRequest {
            kind: converge_domain::KindRef::new("account", 1),
            limit: 1,
            session: world.dispatch.session(),
            worker: "first".into(),
        })
        .await
        .unwrap();
    assert!(claimed.is_empty());
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    let task = world
        .dispatch
        .claim(converge_engine::dispatch::ClaimRequest {
            kind: converge_domain::KindRef::new("account", 1),
            limit: 1,
            session: world.dispatch.session(),
            worker: "first".into(),
        })
        .await
        .unwrap()
        .remove(0);
    world.serve(&[("account", 1)], |_, _| Answer::Done(json!({})));
    world.dispatch.release(task.fence, "its worker is silent".into()).await.unwrap();
    world.until_ready("account", "a").await;
    let state = world.get("account", "a").await.unwrap();
    assert!(state.epoch > task.fence.epoch);
    assert_eq!(world.tasks.lock().unwrap()[0].2, task.idempotency_key);
    // The zombie's answer changes nothing.
    let late = converge_engine::dispatch::TaskOutcome {
        fence: task.fence,
        kind: task.kind,
        result: converge_engine::dispatch::TaskResult::Failure {
            message: "late".into(),
            terminal: true,
            status: None,
        },
    };
    assert_eq!(world.dispatch.record(late).await.unwrap(), converge_engine::dispatch::Recorded::Fenced);
    assert_eq!(world.get("account", "a").await.unwrap().phase(), Phase::Ready);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_dependent_goes_on_when_its_upstream_is_mended() {
    let mended = Arc::new(AtomicBool::new(false));
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    let well = mended.clone();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], move |task, _| match task.reaction {
        Reaction::Work if task.kind.kind == "account" && !well.load(Ordering::SeqCst) => {
            Answer::Failed { message: "quota exceeded", terminal: true }
        }
        _ => by_spec(task),
    });
    let spec = |size: u32| {
        json!({
            "children": [child("account", "a", json!({"size": size})), child("vpc", "v", json!({}))],
            "edges": [flow(("vpc", "v"), ("account", "a"), "account_id")]
        })
    };
    world.apply(vec![resource("root", "r", spec(1))]).await.unwrap();
    world.until("root", "r", |state| state.is_some_and(|state| state.phase() == Phase::Degraded)).await;
    assert_eq!(world.why("vpc", "v").await, "Blocked by account/a, which is Failed.");
    mended.store(true, Ordering::SeqCst);
    world.apply(vec![resource("root", "r", spec(2))]).await.unwrap();
    world.until_ready("root", "r").await;
    assert_eq!(world.get("vpc", "v").await.unwrap().phase(), Phase::Ready);
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_world_appends_nothing() {
    let world = served().await;
    let spec = json!({"children": [child("account", "a", json!({})), child("vpc", "v", json!({}))]});
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until_ready("root", "r").await;
    let head = world.head().await;
    let store = world.end().await;
    // A new process looks at everything that is not settled, which is nothing.
    let next = World::over(store).await;
    next.apply(vec![leaf_kind("vpc")]).await.unwrap();
    assert_eq!(next.head().await, head);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_level_resources_may_depend_on_each_other() {
    let world = served().await;
    let mut dependent = resource("vpc", "v", json!({}));
    dependent["depends_on"] = json!([{
        "kind": "account", "name": "a", "values": [{"dependent_field": "/account_id", "source_field": "/id"}]
    }]);
    world.apply(vec![dependent.clone(), resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("vpc", "v").await;
    assert_eq!(world.get("vpc", "v").await.unwrap().effective_spec(), json!({"account_id": "account-a"}));
    let head = world.head().await;
    world.apply(vec![dependent, resource("account", "a", json!({}))]).await.unwrap();
    assert_eq!(world.head().await, head);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flowed_value_that_breaks_the_schema_fails_the_dependent_before_it_is_dispatched() {
    let mut world = World::new().await;
    let mut vpc = leaf_kind("vpc");
    vpc["spec_schema"] = json!({
        "type": "object", "required": ["account_id"],
        "properties": {"account_id": {"type": "string", "minLength": 12}}
    });
    world.apply(vec![composer_kind("root"), leaf_kind("account"), vpc]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| by_spec(task));
    let spec = json!({
        "children": [child("account", "a", json!({})), child("vpc", "v", json!({}))],
        "edges": [flow(("vpc", "v"), ("account", "a"), "account_id")]
    });
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until("vpc", "v", |state| state.is_some_and(|state| state.phase() == Phase::Failed)).await;
    assert!(world.why("vpc", "v").await.contains("/account_id"));
    assert!(!world.tasks.lock().unwrap().iter().any(|(name, _, _)| name == "vpc/v"));
    world.until("root", "r", |state| state.is_some_and(|state| state.phase() == Phase::Degraded)).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_an_earlier_process_has_set_comes_when_it_is_due() {
    let mut world = World::new().await;
    world.apply(vec![leaf_kind("account")]).await.unwrap();
    world.serve(&[("account", 1)], |_, _| Answer::Failed { message: "busy", terminal: false });
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    // Long enough that the retry lies well behind the start of the next process.
    world.until("account", "a", |state| state.is_some_and(|state| state.attempts >= 4)).await;
    world.kill_worker();
    let due = world.get("account", "a").await.unwrap().retry_at;
    let store = world.end().await;
    let mut world = World::over(store).await;
    world.serve(&[("account", 1)], |_, _| Answer::Done(json!({})));
    world.until_ready("account", "a").await;
    // On a clock that only moves when nobody has anything to do: not at the next look half a minute later.
    let worked = world.get("account", "a").await.unwrap().updated_at;
    let late = due.map_or(0, |due| worked.0 - due.0);
    assert!(late < 3_000, "{late} ms after it was due");
}
