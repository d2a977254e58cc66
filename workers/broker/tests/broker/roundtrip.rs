//! What every task goes through.

use crate::engine::{self, Fact, FakeEngine, task};
use crate::worker::{run, scripted};
use converge_broker::BrokerConfig;
use converge_engine::dispatch::{InputPart, Recorded, TaskResult};
use converge_sdk::{Child, Composition, Json, Outcome, Readiness, Request, terminal};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::watch;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_travels_whole_and_its_outcome_comes_back() {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let _worker = run(
        &server,
        vec![scripted("vpc", async |request: Request| {
            let spec: serde_json::Value = request.spec.value()?;
            let seen = json!({
                "cidr": spec["cidr"], "name": request.name, "key": request.idempotency_key,
                "team": request.labels["team"], "attempt": request.attempt, "before": request.status.is_some(),
                "config": request.effective_config()?, "left": request.time_left().is_some(),
            });
            Ok(Outcome::new().status(seen).healthy(true).changed(true))
        })],
    );
    let mut work = task("vpc", "payments");
    work.spec = r#"{"cidr":"10.0.0.0/16"}"#.into();
    work.status = Some("{}".into());
    work.attempt = 3;
    work.deadline_ms = Some(60_000);
    work.labels.insert("team".to_owned(), "payments".to_owned());
    work.default_config = Some(engine.set_default("vpc", 7, r#"{"a":{"x":1},"b":1}"#));
    let mut over = work.default_config.clone().unwrap();
    over.spec = r#"{"a":{"y":2},"b":2}"#.into();
    work.config_override = Some(over);
    let fence = engine.enqueue(work);

    let (result, recorded) = engine.recorded(fence).await;
    assert_eq!(recorded, Recorded::Accepted);
    let TaskResult::Success { status: Some(status), healthy, changed, .. } = result else {
        panic!("{result:?}")
    };
    assert_eq!((healthy, changed), (Some(true), Some(true)));
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&status).unwrap(),
        json!({
            "cidr": "10.0.0.0/16", "name": "payments", "key": "vpc/payments/work/1.0", "team": "payments",
            "attempt": 3, "before": true, "config": { "a": { "x": 1, "y": 2 }, "b": 2 }, "left": true,
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_say_whether_another_try_may_help_and_a_panic_is_one_of_them() {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let _worker = run(
        &server,
        vec![scripted("vpc", async |request: Request| match request.name.as_str() {
            "io" => Err(std::io::Error::other("unplugged"))?,
            "terminal" => Err(terminal("never").with_status(json!({ "half": 1 }))),
            "panic" => panic!("index out of luck"),
            _ => Ok(Outcome::new()),
        })],
    );
    let mut seen = Vec::new();
    for name in ["io", "terminal", "panic", "fine"] {
        let fence = engine.enqueue(task("vpc", name));
        seen.push(match engine.recorded(fence).await.0 {
            TaskResult::Failure { message, terminal, status } => (message, terminal, status.is_some()),
            TaskResult::Success { .. } => ("success".to_owned(), false, false),
        });
    }
    let said = |message: &str, terminal, status| (message.to_owned(), terminal, status);
    assert_eq!(
        seen,
        [
            said("unplugged", false, false),
            said("never", true, true),
            said("the handler panicked: index out of luck", false, false),
            said("success", false, false),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composition_larger_than_a_message_is_staged_in_order_and_counted() {
    const CHILDREN: usize = 20_000;
    let engine = FakeEngine::new(&["fleet"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let _worker = run(
        &server,
        vec![scripted("fleet", async |_| {
            let mut composition = Composition::new();
            for index in 0..CHILDREN {
                composition.child(&Child {
                    kind: "node".to_owned(),
                    kind_version: 1,
                    name: format!("n{index}"),
                    spec: json!({ "padding": "x".repeat(200) }),
                    labels: [("i".to_owned(), index.to_string())].into(),
                    provider_config_ref: None,
                    deletion_protection: None,
                });
            }
            Ok(Outcome::new().composition(composition))
        })],
    );
    let fence = engine.enqueue(task("fleet", "big"));
    let (result, _) = engine.recorded(fence).await;
    let TaskResult::Success { children, edges, .. } = result else { panic!("{result:?}") };
    assert_eq!((children, edges), (CHILDREN as u64, 0));

    let (mut next, mut frames) = (0_i64, 0);
    for fact in engine.facts() {
        if let Fact::Staged(frame) = fact {
            assert_eq!((frame.fence, frame.first_ordinal), (fence, next));
            assert!(frame.items.iter().map(String::len).sum::<usize>() <= converge_protocol::FRAME_BYTES_MAX);
            for item in &frame.items {
                assert!(item.contains(&format!("\"n{next}\"")), "{item}");
                next += 1;
            }
            frames += 1;
        }
    }
    assert_eq!(next, CHILDREN as i64);
    assert!(frames > 4, "one message would have held it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_input_is_read_only_as_fast_as_the_handler_consumes_it() {
    const PAGES: usize = 100;
    let engine = FakeEngine::new(&["fleet", "small"]);
    let config = BrokerConfig { input_window: 4, ..BrokerConfig::default() };
    let server = engine::start(&engine, config).await;
    let (go, wait) = watch::channel(false);
    let reading = Arc::clone(&engine);
    let _worker = run(
        &server,
        vec![
            scripted("fleet", move |mut request: Request| {
                let (mut wait, engine) = (wait.clone(), Arc::clone(&reading));
                async move {
                    wait.wait_for(|go| *go).await?;
                    let before = *engine.pages_read.lock().unwrap();
                    let mut items = Vec::<usize>::new();
                    while let Some((part, page)) = request.input.next_page().await? {
                        assert_eq!(part, "descendants");
                        for item in page {
                            items.push(Json::parse(&item)?);
                        }
                    }
                    let whole = items == (0..PAGES).collect::<Vec<_>>();
                    Ok(Outcome::new().status(json!({ "before": before, "whole": whole })))
                }
            }),
            scripted("small", async |_| Ok(Outcome::new())),
        ],
    );
    let mut rollup = task("fleet", "big");
    rollup.paged_input = Some(InputPart::Descendants);
    engine.set_pages(rollup.fence.id, (0..PAGES).map(|i| format!("[{i}]").into()).collect());
    let fence = engine.enqueue(rollup);
    // Its input fills the window and stops there; another kind's task still comes and goes on the same stream.
    let other = engine.enqueue(task("small", "one"));
    engine.recorded(other).await;
    go.send(true).unwrap();
    let (result, _) = engine.recorded(fence).await;
    let TaskResult::Success { status: Some(status), .. } = result else { panic!("{result:?}") };
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    assert_eq!(status["whole"], true);
    assert!(status["before"].as_u64().unwrap() <= 4, "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_not_ready_parks_its_kind_and_no_other() {
    let engine = FakeEngine::new(&["cool", "hot"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let (ready, changes) = watch::channel(Readiness::NotReady("no credentials".to_owned()));
    let mut hot = scripted("hot", async |_| Ok(Outcome::new()));
    hot.ready = Some(changes);
    let _worker = run(&server, vec![hot, scripted("cool", async |_| Ok(Outcome::new()))]);
    engine.served(&[("cool", 1)]).await;
    let parked = engine.enqueue(task("hot", "a"));
    let runs = engine.enqueue(task("cool", "b"));
    engine.recorded(runs).await;
    assert_eq!(engine.outcomes_of(parked), 0);

    ready.send(Readiness::Ready).unwrap();
    engine.recorded(parked).await;
    engine.served(&[("cool", 1), ("hot", 1)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_taught_after_the_worker_connected_is_served() {
    let engine = FakeEngine::new(&["other"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let _worker = run(
        &server,
        vec![scripted("late", async |_| Ok(Outcome::new())), scripted("other", async |_| Ok(Outcome::new()))],
    );
    engine.served(&[("other", 1)]).await;
    engine.teach("late", "late");
    let fence = engine.enqueue(task("late", "a"));
    engine.recorded(fence).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_is_recorded_through_a_database_restart() {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    *engine.record_failures.lock().unwrap() = 3;
    let _worker = run(&server, vec![scripted("vpc", async |_| Ok(Outcome::new()))]);
    let fence = engine.enqueue(task("vpc", "a"));
    assert_eq!(engine.recorded(fence).await.1, Recorded::Accepted);
    assert_eq!(engine.outcomes_of(fence), 1);
}
