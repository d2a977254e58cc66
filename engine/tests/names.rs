//! Waiting for names: upstreams that are not there yet, cycles over them, and a name whose bearer is going away.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod world;

use converge_domain::resource::{Phase, Reaction, ResourceState};
use converge_engine::gateway_api::{GatewayError, Verb};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use world::{Answer, World, child, composer_kind, depending, leaf_kind, resource};

/// Accounts and vpcs; while the flag is up no teardown of an account succeeds.
async fn served() -> (World, Arc<AtomicBool>) {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    let stuck = Arc::new(AtomicBool::new(false));
    let holds = stuck.clone();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], move |task, _| match task.reaction {
        Reaction::Teardown if task.kind.kind == "account" && holds.load(Ordering::SeqCst) => {
            Answer::Failed { message: "still attached", terminal: false }
        }
        Reaction::Compose => Answer::Composed(vec![child("account", "inner", json!({}))], vec![]),
        _ => Answer::Done(json!({"id": task.fence.id.to_string()})),
    });
    (world, stuck)
}

fn violations(error: GatewayError) -> Vec<(String, String)> {
    match error {
        GatewayError::Validation(violations) => {
            violations.into_iter().map(|violation| (violation.pointer, violation.message)).collect()
        }
        other => panic!("not a validation: {other}"),
    }
}

fn is(phase: Phase) -> impl Fn(Option<&ResourceState>) -> bool {
    move |state| state.is_some_and(|state| state.phase() == phase)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_target_is_waited_for_and_named_and_bound_when_it_comes() {
    let (world, _) = served().await;
    let mut vpc = depending("vpc", "v", &["account/a"]);
    vpc["depends_on"][0]["values"] = json!([{"dependent_field": "/account_id", "source_field": "/id"}]);
    world.apply(vec![vpc]).await.unwrap();
    assert_eq!(world.why("vpc", "v").await, "Waits for account/a, which does not exist.");
    world
        .until("vpc", "v", |state| {
            state.is_some_and(|state| state.gate == converge_domain::resource::Gate::Blocked)
        })
        .await;
    let synced = world.condition("vpc", "v", "Synced").await.unwrap();
    assert_eq!(synced, "account/a is not there yet");
    assert!(world.tasks_of("vpc/v").is_empty());
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("vpc", "v").await;
    let account = world.get("account", "a").await.unwrap().id().id;
    assert_eq!(
        world.get("vpc", "v").await.unwrap().effective_spec(),
        json!({"account_id": account.to_string()})
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_a_name_outlives_the_process() {
    let (world, _) = served().await;
    world.apply(vec![depending("vpc", "v", &["account/a"])]).await.unwrap();
    let store = world.end().await;
    let mut world = World::over(store).await;
    world.serve(&[("account", 1), ("vpc", 1)], |_, _| Answer::Done(json!({})));
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("vpc", "v").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_going_away_is_waited_for_until_it_is_made_anew() {
    let (world, stuck) = served().await;
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    stuck.store(true, Ordering::SeqCst);
    world.delete("account", "a").await;
    world.apply(vec![depending("vpc", "v", &["account/a"])]).await.unwrap();
    assert_eq!(world.why("vpc", "v").await, "Waits for account/a to be made anew: it is being deleted.");
    stuck.store(false, Ordering::SeqCst);
    world.until_gone("account", "a").await;
    assert_eq!(world.why("vpc", "v").await, "Waits for account/a, which does not exist.");
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("vpc", "v").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cycle_is_refused_and_the_shortest_one_named() {
    let (world, _) = served().await;
    world
        .apply(vec![
            depending("vpc", "a", &["vpc/b"]),
            depending("vpc", "b", &["vpc/c"]),
            resource("vpc", "c", json!({})),
        ])
        .await
        .unwrap();
    world.until_ready("vpc", "a").await;
    let head = world.head().await;
    let refused = world.apply(vec![depending("vpc", "c", &["vpc/a", "vpc/b"])]).await.unwrap_err();
    assert_eq!(
        violations(refused),
        [
            (
                "/depends_on/0".to_owned(),
                "it would close a cycle: vpc/c -> vpc/a -> vpc/b -> vpc/c".to_owned()
            ),
            ("/depends_on/1".to_owned(), "it would close a cycle: vpc/c -> vpc/b -> vpc/c".to_owned()),
        ]
    );
    // Also among the documents of one request, and over one that is only waited for.
    let both = vec![depending("vpc", "x", &["vpc/y"]), depending("vpc", "y", &["vpc/x"])];
    assert_eq!(violations(world.apply(both).await.unwrap_err()).len(), 2);
    assert_eq!(world.head().await, head, "nothing was stored");
    world.apply(vec![depending("vpc", "p", &["vpc/q"])]).await.unwrap();
    let refused = world.apply(vec![depending("vpc", "q", &["vpc/p"])]).await.unwrap_err();
    assert_eq!(violations(refused)[0].1, "it would close a cycle: vpc/q -> vpc/p -> vpc/q");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_takes_an_edge_away_lets_the_opposite_one_in() {
    let (world, _) = served().await;
    world.apply(vec![depending("vpc", "a", &["vpc/b"]), resource("vpc", "b", json!({}))]).await.unwrap();
    world.until_ready("vpc", "a").await;
    // Judged as the request leaves it, not as it was.
    world.apply(vec![depending("vpc", "b", &["vpc/a"]), resource("vpc", "a", json!({}))]).await.unwrap();
    world.until_ready("vpc", "b").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_composers_child_cannot_be_depended_on() {
    let (world, _) = served().await;
    world.apply(vec![resource("root", "r", json!({}))]).await.unwrap();
    world.until_ready("root", "r").await;
    let refused = world.apply(vec![depending("vpc", "v", &["account/inner"])]).await.unwrap_err();
    assert_eq!(
        violations(refused),
        [(
            "/depends_on/0".to_owned(),
            "account/inner is a part of root/r; only top-level resources may be depended on".to_owned()
        )]
    );
    // Neither its own descendant, which it would wait for for ever.
    let refused = world.apply(vec![depending("root", "r", &["account/inner"])]).await.unwrap_err();
    assert_eq!(violations(refused).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_are_declared_at_once_and_need_each_other_wait_and_say_so() {
    let (world, _) = served().await;
    let forth = world.apply(vec![depending("vpc", "p", &["vpc/q"])]);
    let back = world.apply(vec![depending("vpc", "q", &["vpc/p"])]);
    let (forth, back) = tokio::join!(forth, back);
    if forth.is_ok() && back.is_ok() {
        // Neither saw the other. Nothing is bound in a circle, and each names it.
        let why = world.why("vpc", "p").await;
        assert!(why.contains("vpc/p -> vpc/q -> vpc/p"), "{why}");
        assert!(world.get("vpc", "p").await.unwrap().edges[0].unbound);
        assert!(world.get("vpc", "q").await.unwrap().edges[0].unbound);
    }
    // An edit of one lets both go on.
    world.apply(vec![resource("vpc", "q", json!({}))]).await.unwrap();
    world.apply(vec![depending("vpc", "p", &["vpc/q"])]).await.unwrap();
    world.until_ready("vpc", "p").await;
    world.until_ready("vpc", "q").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_applied_again_during_its_teardown_is_a_new_incarnation_that_waits() {
    let (world, stuck) = served().await;
    world.apply(vec![resource("account", "a", json!({"n": 1}))]).await.unwrap();
    world.until_ready("account", "a").await;
    let old = world.get("account", "a").await.unwrap().id().id;
    stuck.store(true, Ordering::SeqCst);
    world.delete("account", "a").await;
    let applied = world.apply(vec![resource("account", "a", json!({"n": 2}))]).await.unwrap().remove(0);
    assert_eq!(applied.verb, Verb::Created);
    assert_ne!(applied.id, old.into());
    let next = world.gateway.why(converge_domain::ResourceId(applied.id.0)).await.unwrap().sentence;
    assert_eq!(next, "Waits until the account/a before it, which is being deleted, is gone.");
    // The name is the old one's until it is gone; applying again goes to the new one.
    assert_eq!(world.get("account", "a").await.unwrap().id().id, old);
    let again = world.apply(vec![resource("account", "a", json!({"n": 2}))]).await.unwrap().remove(0);
    assert_eq!((again.verb, again.id), (Verb::Unchanged, applied.id));
    let edited = world.apply(vec![resource("account", "a", json!({"n": 3}))]).await.unwrap().remove(0);
    assert_eq!((edited.verb, edited.id), (Verb::Configured, applied.id));

    stuck.store(false, Ordering::SeqCst);
    world
        .until("account", "a", |state| {
            state.is_some_and(|state| {
                converge_domain::AggregateId::from(state.id().id) == applied.id
                    && state.phase() == Phase::Ready
            })
        })
        .await;
    assert_eq!(*world.get("account", "a").await.unwrap().spec, json!({"n": 3}));
    // Nothing was asked of a worker for it before the old one was gone.
    let story = world.story_after(converge_domain::Position(0)).await;
    let at = |line: &str| story.iter().rposition(|entry| entry == line).unwrap();
    assert!(at("account/a Deleted") < at("account/a NameTaken"), "{story:?}");
    assert!(at("account/a NameTaken") < at("account/a Claimed"), "{story:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_cancels_an_incarnation_that_waits() {
    let (world, stuck) = served().await;
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    stuck.store(true, Ordering::SeqCst);
    world.delete("account", "a").await;
    let next = world.apply(vec![resource("account", "a", json!({}))]).await.unwrap().remove(0).id;
    world.delete("account", "a").await;
    stuck.store(false, Ordering::SeqCst);
    world.until_gone("account", "a").await;
    let mut follower = world.log.tail().follow(converge_domain::Position(0));
    let gone = async {
        while !world.store.heads(&[next]).await.unwrap().is_empty() {
            follower.next().await.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), gone).await.unwrap();
    // It was never claimed, so nobody was asked to tear it down.
    let teardowns = world.tasks_of("account/a").iter().filter(|task| **task == Reaction::Teardown).count();
    let old_only: std::collections::HashSet<String> = world
        .tasks
        .lock()
        .unwrap()
        .iter()
        .filter(|(_, reaction, _)| *reaction == Reaction::Teardown)
        .map(|(_, _, key)| key.clone())
        .collect();
    assert!(teardowns >= 1);
    assert_eq!(old_only.len(), 1, "one decision, that of the old one: {old_only:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_a_name_outlives_a_process_that_ends_between_the_two_incarnations() {
    let (mut world, stuck) = served().await;
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    stuck.store(true, Ordering::SeqCst);
    world.delete("account", "a").await;
    let next = world.apply(vec![resource("account", "a", json!({}))]).await.unwrap().remove(0).id;
    world.kill_worker();
    let store = world.end().await;
    let mut world = World::over(store).await;
    world.serve(&[("account", 1)], |_, _| Answer::Done(json!({})));
    world
        .until("account", "a", |state| {
            state.is_some_and(|state| {
                converge_domain::AggregateId::from(state.id().id) == next && state.phase() == Phase::Ready
            })
        })
        .await;
    world.until("account", "a", is(Phase::Ready)).await;
}
