//! The loop from end to end, in memory.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod world;

use converge_domain::resource::{Phase, Reaction};
use serde_json::{Value, json};
use world::{Answer, World, child, composer_kind, flow, leaf_kind, resource};

/// A root whose spec lists teams; a team has an account and a vpc that needs the account's id.
async fn landing_zone() -> World {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, input| match task.reaction {
        Reaction::Compose => {
            let spec: Value = serde_json::from_slice(&task.spec).unwrap();
            let teams: Vec<&str> =
                spec["teams"].as_array().unwrap().iter().map(|team| team.as_str().unwrap()).collect();
            let children = teams
                .iter()
                .flat_map(|team| [child("vpc", team, json!({})), child("account", team, json!({}))])
                .collect();
            let edges =
                teams.iter().map(|team| flow(("vpc", team), ("account", team), "account_id")).collect();
            Answer::Composed(children, edges)
        }
        Reaction::Rollup => {
            Answer::Done(json!({"ready": input.iter().filter(|item| item["ready"] == true).count()}))
        }
        Reaction::Work | Reaction::Observe => {
            Answer::Done(json!({"id": format!("{}-{}", task.kind.kind, task.name)}))
        }
        Reaction::Teardown => Answer::Done(json!({})),
    });
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaf_converges_in_three_events() {
    let mut world = World::new().await;
    world.apply(vec![leaf_kind("account")]).await.unwrap();
    world.serve(&[("account", 1)], |_, _| Answer::Done(json!({"id": "x"})));
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    assert_eq!(
        world.story_after(converge_domain::Position(0)).await,
        ["account/a Created", "account/a Claimed", "account/a Worked"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_converges_and_its_values_flow() {
    let world = landing_zone().await;
    world.apply(vec![resource("root", "r", json!({"teams": ["red", "blue", "green"]}))]).await.unwrap();
    world.until_ready("root", "r").await;
    let vpc = world.get("vpc", "red").await.unwrap();
    assert_eq!(vpc.effective_spec(), json!({"account_id": "account-red"}));
    assert_eq!(*vpc.spec, json!({}));
    let root = world.get("root", "r").await.unwrap();
    assert_eq!(root.visible_status(), json!({"ready": 6}));
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applying_twice_appends_nothing_and_dispatches_nothing() {
    let world = landing_zone().await;
    let documents = vec![
        composer_kind("root"),
        leaf_kind("account"),
        leaf_kind("vpc"),
        resource("root", "r", json!({"teams": ["red", "blue"]})),
    ];
    world.apply(documents.clone()).await.unwrap();
    world.until_ready("root", "r").await;
    let (head, tasks) = (world.head().await, world.tasks.lock().unwrap().len());
    let again = world.apply(documents).await.unwrap();
    assert!(again.iter().all(|applied| format!("{:?}", applied.verb) == "Unchanged"));
    assert_eq!(world.head().await, head);
    assert_eq!(world.tasks.lock().unwrap().len(), tasks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_closes_exactly_the_gap() {
    let world = landing_zone().await;
    world.apply(vec![resource("root", "r", json!({"teams": ["red", "blue"]}))]).await.unwrap();
    world.until_ready("root", "r").await;
    let head = world.head().await;
    world.apply(vec![resource("root", "r", json!({"teams": ["red", "gold"]}))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.until_gone("account", "blue").await;
    world.until_ready("root", "r").await;
    let touched: std::collections::BTreeSet<String> = world
        .story_after(head)
        .await
        .into_iter()
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    let expected = ["account/blue", "account/gold", "root/r", "vpc/blue", "vpc/gold"];
    assert_eq!(touched.into_iter().collect::<Vec<_>>(), expected);
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_is_torn_down_in_reverse_order() {
    let world = landing_zone().await;
    world.apply(vec![resource("root", "r", json!({"teams": ["red", "blue"]}))]).await.unwrap();
    world.until_ready("root", "r").await;
    let head = world.head().await;
    world.delete("root", "r").await;
    world.until_gone("root", "r").await;
    let ends: Vec<String> =
        world.story_after(head).await.into_iter().filter(|line| line.ends_with(" Deleted")).collect();
    let place = |name: &str| ends.iter().position(|line| line.starts_with(name)).unwrap();
    assert_eq!(ends.len(), 5);
    assert!(place("vpc/red ") < place("account/red "));
    assert!(place("vpc/blue ") < place("account/blue "));
    assert_eq!(place("root/r "), 4);
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_resource_says_what_it_waits_for() {
    let world = World::new().await;
    world.apply(vec![leaf_kind("account")]).await.unwrap();
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    assert_eq!(
        world.why("account", "a").await,
        "Waits for a worker: none that is connected serves account/v1."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transient_faults_are_retried_until_the_tree_is_ready() {
    let mut world = World::new().await;
    world.apply(vec![leaf_kind("account")]).await.unwrap();
    world.serve(&[("account", 1)], |task, _| {
        if task.attempt < 3 {
            Answer::Failed { message: "no route", terminal: false }
        } else {
            Answer::Done(json!({}))
        }
    });
    world.apply(vec![resource("account", "a", json!({}))]).await.unwrap();
    world.until_ready("account", "a").await;
    let keys: std::collections::HashSet<String> =
        world.tasks.lock().unwrap().iter().map(|(_, _, key)| key.clone()).collect();
    assert_eq!(keys.len(), 1, "every retry of one decision has the same idempotency key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_child_degrades_its_root_and_is_named() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1)], |task, _| match task.reaction {
        Reaction::Compose => Answer::Composed(
            vec![child("account", "good", json!({})), child("account", "bad", json!({}))],
            vec![],
        ),
        Reaction::Work if task.name == "bad" => Answer::Failed { message: "quota exceeded", terminal: true },
        _ => Answer::Done(json!({})),
    });
    world.apply(vec![resource("root", "r", json!({}))]).await.unwrap();
    world.until("root", "r", |state| state.is_some_and(|state| state.phase() == Phase::Degraded)).await;
    let why = world.why("root", "r").await;
    assert!(why.contains("account/bad") && why.contains("quota exceeded"), "{why}");
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cycle_is_refused_whole_and_named() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1)], |task, _| match task.reaction {
        Reaction::Compose => Answer::Composed(
            vec![child("account", "a", json!({})), child("account", "b", json!({}))],
            vec![
                flow(("account", "a"), ("account", "b"), "x"),
                flow(("account", "b"), ("account", "a"), "x"),
            ],
        ),
        _ => Answer::Done(json!({})),
    });
    world.apply(vec![resource("root", "r", json!({}))]).await.unwrap();
    world.until("root", "r", |state| state.is_some_and(|state| state.phase() == Phase::Failed)).await;
    let why = world.why("root", "r").await;
    assert!(why.contains("account/a") && why.contains("account/b"), "{why}");
    assert!(world.get("account", "a").await.is_none(), "nothing of it is applied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn composites_nest() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), composer_kind("team"), leaf_kind("account")]).await.unwrap();
    world.serve(&[("root", 1), ("team", 1), ("account", 1)], |task, input| match task.reaction {
        Reaction::Compose if task.kind.kind == "root" => {
            Answer::Composed(vec![child("team", "red", json!({})), child("team", "blue", json!({}))], vec![])
        }
        Reaction::Compose => Answer::Composed(
            (0..3).map(|n| child("account", &format!("{}-{n}", task.name), json!({}))).collect(),
            vec![],
        ),
        Reaction::Rollup => Answer::Done(json!({"descendants": input.len()})),
        _ => Answer::Done(json!({})),
    });
    world.apply(vec![resource("root", "r", json!({}))]).await.unwrap();
    world.until_ready("root", "r").await;
    assert_eq!(world.get("root", "r").await.unwrap().visible_status(), json!({"descendants": 8}));
    assert_eq!(world.get("team", "red").await.unwrap().visible_status(), json!({"descendants": 3}));
    world.check_invariants().await;
    world.delete("root", "r").await;
    world.until_gone("root", "r").await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_status_reaches_dependents_before_their_owner_is_ready_again() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account"), leaf_kind("vpc")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1)], |task, _| {
        let spec: Value = serde_json::from_slice(&task.spec).unwrap();
        match task.reaction {
            Reaction::Compose => Answer::Composed(
                vec![child("account", "a", spec.clone()), child("vpc", "v", json!({}))],
                vec![flow(("vpc", "v"), ("account", "a"), "account_id")],
            ),
            Reaction::Work if task.kind.kind == "account" => Answer::Done(json!({"id": spec["id"]})),
            _ => Answer::Done(json!({})),
        }
    });
    world.apply(vec![resource("root", "r", json!({"id": "one"}))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.apply(vec![resource("root", "r", json!({"id": "two"}))]).await.unwrap();
    world
        .until("root", "r", |state| {
            state.is_some_and(|state| state.phase() == Phase::Ready && state.synced_gen.0 == 2)
        })
        .await;
    let vpc = world.get("vpc", "v").await.unwrap();
    assert_eq!(vpc.effective_spec(), json!({"account_id": "two"}));
    assert_eq!(vpc.phase(), Phase::Ready);
    world.check_invariants().await;
}
