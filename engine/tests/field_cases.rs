//! Situations in which real systems of this kind failed their users, each with its right result.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod world;

use converge_domain::resource::{Phase, Reaction, ResourceEvent, ResourceState};
use converge_domain::{AnyEvent, Position};
use converge_engine::dispatch::Task;
use converge_engine::gateway_api::{Action, Verb};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use world::{Answer, World, child, composer_kind, depending, flow, leaf_kind, resource};

/// What providers answer, by `kind/name`, where they answer something else than usual.
type Script = Arc<Mutex<HashMap<String, Scripted>>>;

/// An answer that can be given again and again.
#[derive(Clone)]
enum Scripted {
    Status(Value),
    Unhealthy,
    Fails(bool),
    TeardownFails,
    HalfItsOutput,
}

fn by_spec(task: &Task, scripted: Option<Scripted>) -> Answer {
    let spec: Value = serde_json::from_slice(&task.spec).unwrap();
    let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
    let failed = |message, terminal| Answer::Failed { message, terminal };
    match (task.reaction, scripted) {
        (Reaction::Teardown, Some(Scripted::TeardownFails)) => failed("still attached", false),
        (Reaction::Compose, Some(Scripted::Fails(terminal))) => failed("the composer stumbled", terminal),
        // An edge to a child that the output leaves out.
        (Reaction::Compose, Some(Scripted::HalfItsOutput)) => Answer::Composed(vec![], list("edges")),
        (Reaction::Compose, _) => Answer::Composed(list("children"), list("edges")),
        (Reaction::Work | Reaction::Observe, Some(Scripted::Status(status))) => Answer::Done(status),
        (Reaction::Work | Reaction::Observe, Some(Scripted::Unhealthy)) => {
            Answer::Found { status: json!({"id": "x"}), healthy: false }
        }
        (Reaction::Work, Some(Scripted::Fails(terminal))) => failed("no quota", terminal),
        (Reaction::Work | Reaction::Observe, _) => {
            Answer::Done(json!({"id": format!("{}-{}", task.kind.kind, task.name)}))
        }
        _ => Answer::Done(json!({})),
    }
}

async fn served() -> (World, Script) {
    let mut world = World::new().await;
    let kinds = ["account", "vpc", "route"].map(leaf_kind);
    world.apply([vec![composer_kind("root")], kinds.to_vec()].concat()).await.unwrap();
    let script = Script::default();
    let read = script.clone();
    world.serve(&[("root", 1), ("account", 1), ("vpc", 1), ("route", 1)], move |task, _| {
        let scripted = read.lock().unwrap().get(&format!("{}/{}", task.kind.kind, task.name)).cloned();
        by_spec(task, scripted)
    });
    (world, script)
}

fn set(script: &Script, name: &str, answer: Option<Scripted>) {
    let mut script = script.lock().unwrap();
    match answer {
        Some(answer) => script.insert(name.to_owned(), answer),
        None => script.remove(name),
    };
}

fn is(phase: Phase) -> impl Fn(Option<&ResourceState>) -> bool {
    move |state| state.is_some_and(|state| state.phase() == phase)
}

fn pair() -> Value {
    json!({
        "children": [child("account", "a", json!({})), child("vpc", "v", json!({}))],
        "edges": [flow(("vpc", "v"), ("account", "a"), "account_id")]
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_2_three_empty_things_each_applied_ten_times_are_three_things_and_no_new_generations() {
    let (world, _) = served().await;
    let specs = [json!({"f": {}}), json!({}), json!({"f": null})];
    for (n, spec) in specs.iter().enumerate() {
        let document = resource("account", &format!("a{n}"), spec.clone());
        for round in 0..10 {
            let applied = world.apply(vec![document.clone()]).await.unwrap().remove(0);
            assert_eq!(applied.verb, if round == 0 { Verb::Created } else { Verb::Unchanged });
        }
        let state = world.get("account", &format!("a{n}")).await.unwrap();
        assert_eq!((*state.spec).clone(), *spec);
        assert_eq!(state.generation.0, 1);
    }
    // From one to the next each is an edit.
    for (n, spec) in specs.iter().enumerate() {
        let document = resource("account", "one", spec.clone());
        world.apply(vec![document]).await.unwrap();
        assert_eq!(world.get("account", "one").await.unwrap().generation.0, n as u64 + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_7_a_file_with_an_immutable_field_that_has_a_default_is_a_no_op_when_applied_again() {
    let (world, _) = served().await;
    let mut kind = leaf_kind("fixed");
    kind["spec_schema"] =
        json!({"type": "object", "properties": {"region": {"type": "string", "default": "eu"}}});
    kind["immutable"] = json!(["/spec/region"]);
    world.apply(vec![kind]).await.unwrap();
    let file = resource("fixed", "f", json!({}));
    world.apply(vec![file.clone()]).await.unwrap();
    let head = world.head().await;
    assert_eq!(world.apply(vec![file]).await.unwrap()[0].verb, Verb::Unchanged);
    assert_eq!(world.head().await, head);
    assert_eq!(*world.get("fixed", "f").await.unwrap().spec, json!({}), "defaults are not written into it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_8_labels_alone_give_leaves_no_task_and_reach_children_that_the_composer_projects_them_on() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account")]).await.unwrap();
    world.serve(&[("root", 1), ("account", 1)], |task, _| match task.reaction {
        Reaction::Compose => {
            let mut labelled = child("account", "a", json!({}));
            labelled["labels"] = json!(task.labels);
            Answer::Composed(vec![labelled], vec![])
        }
        _ => Answer::Done(json!({})),
    });
    world.apply(vec![resource("root", "r", json!({}))]).await.unwrap();
    world.until_ready("root", "r").await;
    let mut labelled = resource("root", "r", json!({}));
    labelled["labels"] = json!({"team": "payments"});
    world.apply(vec![labelled]).await.unwrap();
    world.until("account", "a", |state| state.is_some_and(|state| state.labels.contains_key("team"))).await;
    world.until_ready("root", "r").await;
    assert_eq!(world.tasks_of("account/a"), [Reaction::Work], "the leaf was worked once, when it was made");
    let composed = world.tasks_of("root/r").into_iter().filter(|task| *task == Reaction::Compose).count();
    assert_eq!(composed, 2, "and the composer ran once more");
    assert_eq!(world.get("root", "r").await.unwrap().generation.0, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_11_a_value_that_comes_late_is_waited_for_followed_and_kept_when_it_goes() {
    let (world, script) = served().await;
    set(&script, "account/a", Some(Scripted::Status(json!({"other": 1}))));
    world.apply(vec![resource("root", "r", pair())]).await.unwrap();
    world.until_ready("account", "a").await;
    world.until("vpc", "v", |state| state.is_some_and(|state| !state.unresolved.is_empty())).await;
    let waiting = world.get("vpc", "v").await.unwrap();
    assert_eq!(waiting.phase(), Phase::Reconciling, "it waits and has not failed");
    assert_eq!(
        world.why("vpc", "v").await,
        "Waits for /id of account/a (for /account_id): the whole value has no field `id`."
    );
    assert!(world.tasks_of("vpc/v").is_empty(), "never run with a hole");

    for id in ["one", "two"] {
        set(&script, "account/a", Some(Scripted::Status(json!({"id": id}))));
        world.act("account", "a", Action::Resync).await.unwrap();
        world
            .until("vpc", "v", |state| {
                state.is_some_and(|state| {
                    state.phase() == Phase::Ready && state.effective_spec() == json!({"account_id": id})
                })
            })
            .await;
        world.until_ready("root", "r").await;
    }

    set(&script, "account/a", Some(Scripted::Status(json!({"id": null}))));
    world.act("account", "a", Action::Resync).await.unwrap();
    world.until("vpc", "v", |state| state.is_some_and(|state| !state.unresolved.is_empty())).await;
    let kept = world.get("vpc", "v").await.unwrap();
    assert_eq!(kept.effective_spec(), json!({"account_id": "two"}), "its last value stays");
    assert_eq!(kept.phase(), Phase::Ready, "and its phase");
    let marked = world.condition("vpc", "v", "InputsResolved").await.unwrap();
    assert_eq!(marked, "/id of account/a (for /account_id): it is null");
    assert!(kept.deletion.is_none());
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_12_an_unresolved_input_holds_up_neither_its_source_nor_its_siblings() {
    let (world, script) = served().await;
    set(&script, "account/a", Some(Scripted::Status(json!({}))));
    let mut spec = pair();
    spec["children"].as_array_mut().unwrap().push(child("route", "sibling", json!({})));
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until("vpc", "v", |state| state.is_some_and(|state| !state.unresolved.is_empty())).await;
    world.until_ready("account", "a").await;
    world.until_ready("route", "sibling").await;
    assert_eq!(world.get("root", "r").await.unwrap().phase(), Phase::Reconciling);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_14_a_root_is_ready_at_no_event_over_a_child_that_is_synced_but_unhealthy() {
    let (world, script) = served().await;
    set(&script, "vpc/v", Some(Scripted::Unhealthy));
    world.apply(vec![resource("root", "r", pair())]).await.unwrap();
    world.until("root", "r", is(Phase::Degraded)).await;
    assert!(world.why("root", "r").await.starts_with("Degraded by vpc/v"));
    world.check_invariants().await;
    // Not at any event of the whole stream.
    let root = world.get("root", "r").await.unwrap().id().id;
    let mut state = ResourceState::default();
    for stored in world.events().await.iter().filter(|stored| stored.aggregate_id == root.into()) {
        if let AnyEvent::Resource(event) = &stored.event {
            cqrs_es::Aggregate::apply(&mut state, event.clone());
            assert_ne!(state.phase(), Phase::Ready, "at {}", stored.position);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_15_a_child_that_moves_while_its_roots_rollup_runs_is_rolled_up_again_without_a_timer() {
    let mut world = World::new().await;
    world.apply(vec![composer_kind("root"), leaf_kind("account")]).await.unwrap();
    let (begun, mut running) = tokio::sync::mpsc::channel(1);
    let (go_on, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let first = std::sync::atomic::AtomicBool::new(true);
    world.serve(&[("root", 1)], move |task, input| match task.reaction {
        Reaction::Compose => Answer::Composed(vec![child("account", "a", json!({}))], vec![]),
        Reaction::Rollup => {
            if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                begun.try_send(()).unwrap();
                gate.lock().unwrap().recv().unwrap();
            }
            let seen: Vec<Value> = input.iter().map(|item| item["status"]["n"].clone()).collect();
            Answer::Done(json!({"seen": seen}))
        }
        _ => Answer::Done(json!({})),
    });
    let number = Arc::new(std::sync::atomic::AtomicU64::new(1));
    let answer = number.clone();
    let mut leaves = world.second_worker();
    leaves.serve(&[("account", 1)], move |_, _| {
        Answer::Done(json!({"n": answer.load(std::sync::atomic::Ordering::SeqCst)}))
    });
    world.apply(vec![resource("root", "r", json!({}))]).await.unwrap();
    running.recv().await.unwrap();
    // The rollup is in a worker's hands; the child's status changes under it.
    number.store(2, std::sync::atomic::Ordering::SeqCst);
    world.act("account", "a", Action::Resync).await.unwrap();
    world.until("account", "a", |state| state.is_some_and(|state| state.resynced == 1)).await;
    go_on.send(()).unwrap();
    world
        .until("root", "r", |state| {
            state.is_some_and(|state| {
                state.phase() == Phase::Ready && state.visible_status() == json!({"seen": [2]})
            })
        })
        .await;
    world.check_invariants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_16_a_reason_names_the_upstream_that_is_waited_for() {
    let (world, script) = served().await;
    set(&script, "account/a", Some(Scripted::Fails(false)));
    let documents = vec![
        resource("account", "a", json!({})),
        resource("account", "b", json!({})),
        depending("vpc", "c", &["account/b", "account/a"]),
    ];
    world.apply(documents).await.unwrap();
    world.until_ready("account", "b").await;
    world.until("account", "a", |state| state.is_some_and(|state| state.attempts > 0)).await;
    assert_eq!(world.why("vpc", "c").await, "Waits for account/a, which is Reconciling.");
    set(&script, "account/a", None);
    world.act("account", "a", Action::Resync).await.unwrap();
    world.until_ready("vpc", "c").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_18_after_a_failed_pass_and_a_success_nothing_stale_is_left() {
    let (world, script) = served().await;
    set(&script, "root/r", Some(Scripted::Fails(true)));
    world.apply(vec![resource("root", "r", pair())]).await.unwrap();
    world.until("root", "r", is(Phase::Failed)).await;
    set(&script, "root/r", None);
    world.act("root", "r", Action::Resync).await.unwrap();
    world.until_ready("root", "r").await;
    let root = world.get("root", "r").await.unwrap();
    assert_eq!(root.synced_gen, root.generation);
    assert!(root.last_failure.is_none());
    let conditions = root.conditions();
    let bad: Vec<_> = conditions
        .iter()
        .filter(|condition| condition.status != converge_domain::resource::ConditionStatus::True)
        .collect();
    assert!(bad.is_empty(), "{bad:?}");
    assert!(conditions.iter().all(|condition| condition.observed_generation == root.generation));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_19_a_delete_ends_though_a_source_has_vanished() {
    let (world, script) = served().await;
    world.apply(vec![resource("root", "r", pair())]).await.unwrap();
    world.until_ready("root", "r").await;
    set(&script, "account/a", Some(Scripted::Status(json!({}))));
    world.act("account", "a", Action::Resync).await.unwrap();
    world.until("vpc", "v", |state| state.is_some_and(|state| !state.unresolved.is_empty())).await;
    set(&script, "root/r", Some(Scripted::Fails(false)));
    world.delete("root", "r").await;
    world.until_gone("root", "r").await;
    assert!(world.get("account", "a").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_21_in_a_delete_of_everything_edges_outlive_their_last_user() {
    let (world, _) = served().await;
    let documents = vec![
        resource("account", "a", json!({})),
        depending("vpc", "b", &["account/a"]),
        depending("route", "c", &["vpc/b", "account/a"]),
    ];
    world.apply(documents).await.unwrap();
    world.until_ready("route", "c").await;
    world.delete_all(&[("account", "a"), ("vpc", "b"), ("route", "c")], false).await.unwrap();
    world.until_gone("account", "a").await;
    let ends: Vec<String> = world
        .story_after(Position(0))
        .await
        .into_iter()
        .filter(|line| line.ends_with("Deleted") || line.ends_with("TeardownOpened"))
        .collect();
    assert_eq!(
        ends,
        [
            "route/c TeardownOpened",
            "route/c Deleted",
            "vpc/b TeardownOpened",
            "vpc/b Deleted",
            "account/a TeardownOpened",
            "account/a Deleted"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_23_and_25_a_stuck_teardown_holds_what_is_below_it_and_its_root_says_which_and_why() {
    let (world, script) = served().await;
    let spec = json!({
        "children": [
            child("account", "a", json!({})), child("vpc", "b", json!({})), child("route", "c", json!({}))
        ],
        "edges": [
            flow(("vpc", "b"), ("account", "a"), "x"), flow(("route", "c"), ("vpc", "b"), "x")
        ]
    });
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    world.until_ready("root", "r").await;
    set(&script, "vpc/b", Some(Scripted::TeardownFails));
    world.delete("root", "r").await;
    world.until("vpc", "b", |state| state.is_some_and(|state| state.last_failure.is_some())).await;
    assert!(world.get("route", "c").await.is_none());
    let stuck = world.get("vpc", "b").await.unwrap();
    assert_eq!(stuck.phase(), Phase::Deleting);
    assert!(world.condition("vpc", "b", "Ready").await.unwrap().contains("still attached"));
    let untouched = world.tasks_of("account/a");
    assert!(!untouched.contains(&Reaction::Teardown), "{untouched:?}");
    let why = world.why("root", "r").await;
    assert!(why.contains("account/a") || why.contains("vpc/b"), "{why}");
    assert_eq!(world.why("account", "a").await, "Waits until vpc/b, which depends on it, is gone.");
    set(&script, "vpc/b", None);
    world.until_gone("root", "r").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_27_a_composer_that_errs_or_returns_half_its_output_prunes_nothing() {
    let (world, script) = served().await;
    world.apply(vec![resource("root", "r", pair())]).await.unwrap();
    world.until_ready("root", "r").await;
    for (n, answer) in [Scripted::Fails(true), Scripted::HalfItsOutput].into_iter().enumerate() {
        set(&script, "root/r", Some(answer));
        let mut edited = pair();
        edited["n"] = json!(n);
        world.apply(vec![resource("root", "r", edited)]).await.unwrap();
        world.until("root", "r", is(Phase::Failed)).await;
        for (kind, name) in [("account", "a"), ("vpc", "v")] {
            let child = world.get(kind, name).await.unwrap();
            assert!(child.dropped.is_none() && child.deletion.is_none(), "{kind}/{name}");
        }
    }
    let touched = world
        .events()
        .await
        .into_iter()
        .any(|stored| matches!(stored.event, AnyEvent::Resource(ResourceEvent::Dropped { .. })));
    assert!(!touched);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_28_a_spec_that_names_somebody_elses_resource_never_deletes_it() {
    let (world, _) = served().await;
    world.apply(vec![resource("account", "a", json!({"mine": true}))]).await.unwrap();
    world.until_ready("account", "a").await;
    let before = world.get("account", "a").await.unwrap().sequence;
    world.apply(vec![resource("root", "r", pair())]).await.unwrap();
    world.until("root", "r", is(Phase::Degraded)).await;
    world.apply(vec![resource("root", "r", json!({"children": []}))]).await.unwrap();
    world.until_ready("root", "r").await;
    world.delete("root", "r").await;
    world.until_gone("root", "r").await;
    assert_eq!(world.get("account", "a").await.unwrap().sequence, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_29_a_key_removed_from_a_childs_template_disappears_and_flowed_ones_stay() {
    let (world, _) = served().await;
    let mut spec = pair();
    spec["children"][1]["spec"] = json!({"size": 1, "colour": "red"});
    world.apply(vec![resource("root", "r", spec.clone())]).await.unwrap();
    world.until_ready("root", "r").await;
    spec["children"][1]["spec"] = json!({"size": 1});
    world.apply(vec![resource("root", "r", spec)]).await.unwrap();
    let wanted = json!({"size": 1, "account_id": "account-a"});
    world
        .until("vpc", "v", |state| {
            state.is_some_and(|state| state.phase() == Phase::Ready && state.effective_spec() == wanted)
        })
        .await;
    world.until_ready("root", "r").await;
}
