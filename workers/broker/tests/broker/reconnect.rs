//! Connections end; tasks do not.

use crate::engine::{self, FakeEngine, PATIENCE, Server, task};
use crate::worker::{Scripted, run, run_with, scripted};
use converge_broker::BrokerConfig;
use converge_engine::dispatch::{Recorded, TaskResult};
use converge_sdk::{Outcome, Request, Worker};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};

/// A provider of `vpc` that tells when a task starts and ends, and ends none before the gate opens.
struct Gated {
    started: mpsc::UnboundedReceiver<String>,
    done: mpsc::UnboundedReceiver<String>,
    gate: watch::Sender<bool>,
}

fn gated() -> (Scripted, Gated) {
    let ((start, started), (end, done)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let (gate, open) = watch::channel(false);
    let provider = scripted("vpc", move |request: Request| {
        let (start, end, mut open) = (start.clone(), end.clone(), open.clone());
        async move {
            start.send(request.name.clone()).unwrap();
            open.wait_for(|open| *open).await?;
            end.send(request.name.clone()).unwrap();
            Ok(Outcome::new())
        }
    });
    (provider, Gated { started, done, gate })
}

async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, event).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

async fn stop(server: Server) {
    server.shutdown.cancel();
    soon("the broker stops", server.ended).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_task_is_resumed_at_the_next_broker_and_delivered_once() {
    let engine = FakeEngine::new(&["vpc"]);
    let first = engine::start(&engine, BrokerConfig::default()).await;
    let address = first.address;
    let (provider, mut gated) = gated();
    let _worker = run(&first, vec![provider]);
    let fence = engine.enqueue(task("vpc", "a"));
    soon("the task starts", gated.started.recv()).await;
    stop(first).await;

    let _second = engine::start_at(&engine, BrokerConfig::default(), address).await;
    assert!(engine.resumed(fence).await);
    gated.gate.send(true).unwrap();
    assert_eq!(engine.recorded(fence).await.1, Recorded::Accepted);
    assert!(gated.started.try_recv().is_err(), "it ran once");
    assert_eq!(engine.outcomes_of(fence), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_computed_without_a_connection_is_delivered_on_the_next_one() {
    let engine = FakeEngine::new(&["vpc"]);
    let first = engine::start(&engine, BrokerConfig::default()).await;
    let address = first.address;
    let (provider, mut gated) = gated();
    let _worker = run(&first, vec![provider]);
    let fence = engine.enqueue(task("vpc", "a"));
    soon("the task starts", gated.started.recv()).await;
    stop(first).await;
    gated.gate.send(true).unwrap();
    soon("the task ends", gated.done.recv()).await;
    assert_eq!(engine.outcomes_of(fence), 0);

    let _second = engine::start_at(&engine, BrokerConfig::default(), address).await;
    assert_eq!(engine.recorded(fence).await.1, Recorded::Accepted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_claim_ended_meanwhile_is_cancelled_on_return() {
    let engine = FakeEngine::new(&["vpc"]);
    let first = engine::start(&engine, BrokerConfig::default()).await;
    let address = first.address;
    let (started, cancelled) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, cancel) = (Arc::clone(&started), Arc::clone(&cancelled));
    let _worker = run(
        &first,
        vec![scripted("vpc", move |request: Request| {
            let (start, cancel) = (Arc::clone(&start), Arc::clone(&cancel));
            async move {
                start.notify_one();
                request.cancelled.cancelled().await;
                cancel.notify_one();
                Ok(Outcome::new())
            }
        })],
    );
    let fence = engine.enqueue(task("vpc", "a"));
    soon("the task starts", started.notified()).await;
    stop(first).await;
    engine.kill(fence, false);
    let _second = engine::start_at(&engine, BrokerConfig::default(), address).await;
    assert!(!engine.resumed(fence).await);
    soon("the handler is cancelled", cancelled.notified()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_the_engine_ends_is_cancelled_and_its_slot_is_free() {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let (start, mut started) = mpsc::unbounded_channel();
    let builder = Worker::builder().broker(server.address.to_string()).max_parallel(1);
    let provider = scripted("vpc", move |request: Request| {
        let start = start.clone();
        async move {
            start.send(request.name.clone()).unwrap();
            if request.name == "doomed" {
                request.cancelled.cancelled().await;
            }
            Ok(Outcome::new())
        }
    });
    let _worker = run_with(vec![provider], builder);
    let doomed = engine.enqueue(task("vpc", "doomed"));
    soon("the task starts", started.recv()).await;
    let next = engine.enqueue(task("vpc", "next"));
    engine.kill(doomed, true);
    engine.recorded(next).await;
    assert_eq!(engine.outcomes_of(doomed), 0, "nobody waits for a cancelled task's outcome");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_resource_goes_away_is_stopped_and_its_answer_ends_the_claim() {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let started = Arc::new(Notify::new());
    let start = Arc::clone(&started);
    let provider = scripted("vpc", move |request: Request| {
        let start = Arc::clone(&start);
        async move {
            start.notify_one();
            request.cancelled.cancelled().await;
            Ok(Outcome::new())
        }
    });
    let _worker = run(&server, vec![provider]);
    let doomed = engine.enqueue(task("vpc", "doomed"));
    soon("the task starts", started.notified()).await;
    engine.delete(doomed);
    // Under its live fence: without an answer the claim, and with it the teardown, would wait for ever.
    assert_eq!(engine.recorded(doomed).await.1, Recorded::Accepted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_not_come_back_loses_its_tasks_after_a_lease() {
    let engine = FakeEngine::new(&["vpc"]);
    let config = BrokerConfig { lease: Duration::from_millis(400), ..BrokerConfig::default() };
    let server = engine::start(&engine, config).await;
    let (provider, mut gated) = gated();
    let worker = run(&server, vec![provider]);
    let fence = engine.enqueue(task("vpc", "a"));
    soon("the task starts", gated.started.recv()).await;
    worker.ended.abort();
    assert_eq!(engine.released(fence).await, "the worker did not come back");
    engine.served(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_keep_a_long_task_alive_for_many_leases() {
    let engine = FakeEngine::new(&["vpc"]);
    let config = BrokerConfig { lease: Duration::from_secs(2), ..BrokerConfig::default() };
    let server = engine::start(&engine, config).await;
    let _worker = run(
        &server,
        vec![scripted("vpc", async |_| {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(Outcome::new())
        })],
    );
    let fence = engine.enqueue(task("vpc", "a"));
    assert_eq!(engine.recorded(fence).await.1, Recorded::Accepted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_worker_finishes_what_it_can_and_gives_back_the_rest() {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let (start, mut started) = mpsc::unbounded_channel();
    let (stopping, stopped) = watch::channel(false);
    let provider = scripted("vpc", move |request: Request| {
        let (start, mut stopped) = (start.clone(), stopped.clone());
        async move {
            start.send(()).unwrap();
            if request.name == "endless" {
                std::future::pending::<()>().await;
            }
            stopped.wait_for(|stopped| *stopped).await?;
            Ok(Outcome::new())
        }
    });
    let builder = Worker::builder()
        .broker(server.address.to_string())
        .max_parallel(2)
        .drain_timeout(Duration::from_secs(5));
    let worker = run_with(vec![provider], builder);
    let (finishes, endless) =
        (engine.enqueue(task("vpc", "finishes")), engine.enqueue(task("vpc", "endless")));
    for _ in 0..2 {
        soon("the tasks start", started.recv()).await;
    }
    worker.stop.cancel();
    engine.served(&[]).await;
    let untouched = engine.enqueue(task("vpc", "untouched"));
    stopping.send(true).unwrap();
    let (result, recorded) = engine.recorded(finishes).await;
    assert!(matches!(result, TaskResult::Success { .. }) && recorded == Recorded::Accepted);
    assert_eq!(engine.released(endless).await, "the worker gave it back");
    soon("the worker ends", worker.ended).await.unwrap();
    assert_eq!(engine.outcomes_of(untouched), 0);
    assert!(started.try_recv().is_err(), "a draining worker got no new task");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_worker_without_a_broker_stops_all_the_same() {
    let builder = Worker::builder().broker("127.0.0.1:1");
    let worker = run_with(vec![scripted("vpc", async |_| Ok(Outcome::new()))], builder);
    worker.stop.cancel();
    soon("the worker ends", worker.ended).await.unwrap();
}
