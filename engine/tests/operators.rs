//! What operators do by hand: quarantine and release, resync, abandon.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod world;

use converge_domain::resource::{Phase, Reaction, ResourceEvent, ResourceState, Standing};
use converge_domain::{AnyEvent, Position};
use converge_engine::dispatch::Task;
use converge_engine::gateway_api::{Action, GatewayError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use world::{Answer, World, child, composer_kind, flow, leaf_kind, resource};

fn by_spec(task: &Task) -> Answer {
    let spec: Value = serde_json::from_slice(&task.spec).unwrap();
    let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
    match task.reaction {
        Reaction::Compose => Answer::Composed(list("children"), list("edges")),
        Reaction::Work | Reaction::Observe => {
            Answer::Done(json!({"id": format!("{}-{}-{}", task.kind.kind, task.name, spec["n"])}))
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

/// An account whose id flows into a vpc.
fn pair(n: u32) -> Value {
    json!({
        "children": [child("account", "a", json!({"n": n})), child("vpc", "v", json!({"n": n}))],
        "edges": [flow(("vpc", "v"), ("account", "a"), "account_id")]
    })
}

fn is(phase: Phase) -> impl Fn(Option<&ResourceState>) -> bool {
    move |state| state.is_some_and(|state| state.phase() == phase)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantined_resource_is_scheduled_no_more_and_reconciles_on_release() {
    let world = served().await;
    world.apply(vec![resource("account", "a", json!({"n": 1}))]).await.unwrap();
    world.until_ready("account", "a").await;
    let acted = world.act("account", "a", Action::Quarantine).await.unwrap();
    assert!(acted.changed);
    assert!(!world.act("account", "a", Action::Quarantine).await.unwrap().changed, "twice is once");
    let state = world.get("account", "a").await.unwrap();
    assert_eq!((state.phase(), state.standing()), (Phase::Quarantined, Standing::LeftOut));
    assert!(world.why("account", "a").await.starts_with("In quarantine since "));

    // A spec applied meanwhile is stored and nothing is done about it.
    let tasks = world.tasks_of("account/a").len();
    world.apply(vec![resource("account", "a", json!({"n": 2}))]).await.unwrap();
    world.apply(vec![resource("account", "other", json!({}))]).await.unwrap();
    world.until_ready("account", "other").await;
    assert_eq!(world.tasks_of("account/a").len(), tasks);
    assert_eq!(world.get("account", "a").await.unwrap().due(), None);

    world.act("account", "a", Action::Release).await.unwrap();
    world.until_ready("account", "a").await;
    let status = world.get("account", "a").await.unwrap().visible_status();
    assert_eq!(status, json!({"id": "account-a-2"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantined_child_is_left_out_and_what_waits_on_it_is_blocked() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    let broken = Arc::new(AtomicBool::new(true));
    let breaks = broken.clone();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], move |task, _| {
        if task.kind.kind == "account" && breaks.load(Ordering::SeqCst) && task.reaction == Reaction::Work {
            return Answer::Failed { message: "no quota", terminal: true };
        }
        by_spec(task)
    });
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until("root", "r", is(Phase::Degraded)).await;
    world.act("account", "a", Action::Quarantine).await.unwrap();
    // Degraded still: for the one that waits on it.
    world
        .until("root", "r", |state| {
            state.is_some_and(|state| state.phase() == Phase::Degraded && state.culprit.is_some())
        })
        .await;
    let blocked = world.why("vpc", "v").await;
    assert_eq!(blocked, "Blocked by account/a, which is Quarantined.");
    broken.store(false, Ordering::SeqCst);
    world.act("account", "a", Action::Release).await.unwrap();
    // Its generation has failed; its release changes nothing about that.
    world.act("account", "a", Action::Resync).await.unwrap();
    world.until_ready("root", "r").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_do_not_flow_into_a_quarantined_resource_until_its_release() {
    let world = served().await;
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.act("vpc", "v", Action::Quarantine).await.unwrap();
    let spec = world.get("vpc", "v").await.unwrap().effective_spec();
    world.apply(vec![resource("root", "r", pair(2))]).await.unwrap();
    world
        .until("account", "a", |state| {
            state.is_some_and(|state| {
                state.phase() == Phase::Ready && state.visible_status() == json!({"id": "account-a-2"})
            })
        })
        .await;
    world.until_ready("root", "r").await;
    let held = world.get("vpc", "v").await.unwrap();
    assert_eq!(held.effective_spec()["account_id"], spec["account_id"]);
    assert_eq!(held.phase(), Phase::Quarantined);
    world.act("vpc", "v", Action::Release).await.unwrap();
    world
        .until("vpc", "v", |state| {
            state.is_some_and(|state| {
                state.phase() == Phase::Ready && state.effective_spec()["account_id"] == "account-a-2"
            })
        })
        .await;
    world.until_ready("root", "r").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantined_child_is_never_swept_and_its_composer_decides_on_its_release() {
    let world = served().await;
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.act("vpc", "v", Action::Quarantine).await.unwrap();
    let only = json!({"children": [child("account", "a", json!({"n": 1}))]});
    world.apply(vec![resource("root", "r", only)]).await.unwrap();
    world
        .until("root", "r", |state| {
            state.is_some_and(|state| state.generation.0 == 2 && state.phase() == Phase::Ready)
        })
        .await;
    let kept = world.get("vpc", "v").await.unwrap();
    assert!(kept.dropped.is_none() && kept.deletion.is_none());
    world.act("vpc", "v", Action::Release).await.unwrap();
    world.until_gone("vpc", "v").await;
    world.until_ready("root", "r").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cascade_waits_for_a_quarantined_node_and_names_it_until_it_is_deleted_by_name() {
    let world = served().await;
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.act("vpc", "v", Action::Quarantine).await.unwrap();
    world.delete("root", "r").await;
    world.until("account", "a", is(Phase::Deleting)).await;
    assert_eq!(
        world.why("root", "r").await,
        "Waits until account/a, which it owns, is gone.",
        "the first in order"
    );
    assert_eq!(
        world.why("account", "a").await,
        "Waits until vpc/v, which depends on it, is gone; it is in quarantine: release it, or delete it by name."
    );
    assert_eq!(world.get("vpc", "v").await.unwrap().phase(), Phase::Quarantined);
    world.delete("vpc", "v").await;
    world.until_gone("root", "r").await;
    assert!(world.get("vpc", "v").await.is_none() && world.get("account", "a").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releasing_what_a_cascade_waits_for_lets_it_go_too() {
    let world = served().await;
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.act("vpc", "v", Action::Quarantine).await.unwrap();
    world.delete("root", "r").await;
    world.until("account", "a", is(Phase::Deleting)).await;
    world.act("vpc", "v", Action::Release).await.unwrap();
    world.until_gone("root", "r").await;
    assert!(world.get("vpc", "v").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_cascade_could_not_take_goes_with_its_owner_as_soon_as_it_may() {
    let world = served().await;
    // Nothing leans on either and they lean on nothing: only their owner knows of them.
    let spec =
        json!({"children": [child("account", "aside", json!({})), child("account", "kept", json!({}))]});
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until_ready("root", "r").await;
    world.act("account", "aside", Action::Quarantine).await.unwrap();
    world.delete("root", "r").await;
    // Protected after the delete was accepted: the cascade finds it so, or has taken it already.
    let mut protected = resource("account", "kept", json!({}));
    protected["deletion_protection"] = json!(true);
    let _ = world.apply(vec![protected.clone()]).await;
    world.act("account", "aside", Action::Release).await.unwrap();
    world.until_gone("account", "aside").await;
    if world.get("account", "kept").await.is_some_and(|state| state.deletion.is_none()) {
        protected["deletion_protection"] = json!(false);
        world.apply(vec![protected]).await.unwrap();
    }
    world.until_gone("root", "r").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resync_of_a_failed_resource_tries_both_rounds_again_with_a_fresh_counter() {
    let mut world = World::new().await;
    world.apply(vec![leaf_kind("account")]).await.unwrap();
    let broken = Arc::new(AtomicBool::new(true));
    let breaks = broken.clone();
    world.serve(&[("account", 1)], move |task, _| match breaks.load(Ordering::SeqCst) {
        true => Answer::Failed { message: "no quota", terminal: true },
        false => {
            assert_eq!(task.attempt, 1);
            Answer::Done(json!({}))
        }
    });
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until("account", "a", is(Phase::Failed)).await;
    let failed = world.get("account", "a").await.unwrap();
    broken.store(false, Ordering::SeqCst);
    world.act("account", "a", Action::Resync).await.unwrap();
    world.until_ready("account", "a").await;
    let mended = world.get("account", "a").await.unwrap();
    assert_eq!(mended.generation, failed.generation, "the generation is the same");
    assert_eq!(mended.round, failed.round.next(), "and worked in another round");
    // Another decision has another key.
    let keys: Vec<String> = world.tasks.lock().unwrap().iter().map(|(_, _, key)| key.clone()).collect();
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resync_looks_again_and_one_that_finds_nothing_changes_no_phase_and_wakes_nobody() {
    let world = served().await;
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until_ready("root", "r").await;
    let head = world.head().await;
    world.act("account", "a", Action::Resync).await.unwrap();
    world.until("account", "a", |state| state.is_some_and(|state| state.resynced == 1)).await;
    // Something that comes after it, so that whatever it woke would have shown.
    world.apply(vec![resource("account", "other", json!({}))]).await.unwrap();
    world.until_ready("account", "other").await;
    let story: Vec<String> =
        world.story_after(head).await.into_iter().filter(|line| !line.starts_with("account/other")).collect();
    assert_eq!(story, ["account/a ResyncRequested", "account/a Claimed", "account/a Observed"]);
    let size = |event: &ResourceEvent| serde_json::to_string(event).unwrap().len();
    for stored in world.events().await.iter().filter(|stored| stored.position > head) {
        if let AnyEvent::Resource(event @ ResourceEvent::Observed(_)) = &stored.event {
            assert!(size(event) < 200, "{event:?}");
        }
    }
    assert_eq!(world.tasks_of("account/a"), [Reaction::Work, Reaction::Observe]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_resync_finds_unhealthy_degrades_its_owner_and_nothing_is_ready_over_it() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| match task.reaction {
        Reaction::Observe => Answer::Found { status: json!({"id": "gone"}), healthy: false },
        _ => by_spec(task),
    });
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.act("vpc", "v", Action::Resync).await.unwrap();
    world.until("root", "r", is(Phase::Degraded)).await;
    world.until("vpc", "v", is(Phase::Degraded)).await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_look_at_the_world_says_so() {
    let world = served().await;
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until_ready("root", "r").await;
    let refused = world.act("root", "r", Action::Resync).await.unwrap_err();
    assert!(matches!(&refused, GatewayError::Conflict(why) if why.starts_with("root/r: ")), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoning_a_stuck_teardown_lets_its_ancestors_go_and_records_what_may_leak() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| {
        match (task.reaction, task.kind.kind.as_str()) {
            (Reaction::Teardown, "vpc") => {
                Answer::Failed { message: "the target is gone for good", terminal: true }
            }
            _ => by_spec(task),
        }
    });
    world.may_be_fenced = true;
    world.apply(vec![resource("root", "r", pair(1))]).await.unwrap();
    world.until_ready("root", "r").await;
    let early = world.act("vpc", "v", Action::Abandon).await.unwrap_err();
    assert!(matches!(&early, GatewayError::Conflict(why) if why.contains("not being deleted")), "{early}");
    world.delete("root", "r").await;
    world.until("vpc", "v", |state| state.is_some_and(|state| state.last_failure.is_some())).await;
    assert_eq!(world.get("account", "a").await.unwrap().phase(), Phase::Deleting);
    assert_eq!(world.why("account", "a").await, "Waits until vpc/v, which depends on it, is gone.");
    let stuck = world.why("vpc", "v").await;
    assert!(stuck.contains("the target is gone for good"), "{stuck}");
    // Not the one that waits: the one that does not end.
    let waits = world.act("account", "a", Action::Abandon).await.unwrap_err();
    assert!(matches!(&waits, GatewayError::Conflict(why) if why.contains("does not end")), "{waits}");

    let acted = abandon(&world).await;
    assert!(acted.contains("acme/vpc"), "{acted}");
    world.until_gone("root", "r").await;
    let given_up = world.events().await.into_iter().find_map(|stored| match stored.event {
        AnyEvent::Resource(ResourceEvent::Abandoned { reason, finalizers, .. }) => {
            Some((reason, finalizers, stored.metadata.get("actor").cloned()))
        }
        _ => None,
    });
    let (reason, finalizers, actor) = given_up.unwrap();
    assert_eq!(
        (reason.as_str(), finalizers, actor.as_deref()),
        ("a test says so", vec!["acme/vpc".to_owned()], Some("operator"))
    );
}

/// Between two attempts a task of it may run: the decision is made on whatever is there.
async fn abandon(world: &World) -> String {
    world.act("vpc", "v", Action::Abandon).await.unwrap().notes.join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_on_something_that_is_not_there_changes_nothing() {
    let world = served().await;
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    let head = world.head().await;
    let missing = world.act("account", "nobody", Action::Quarantine).await.unwrap_err();
    assert!(matches!(missing, GatewayError::NotFound(_)), "{missing}");
    assert_eq!(world.head().await, head);
    assert!(head > Position(0));
}
