//! Slots are few, kinds are many.

use crate::engine::{self, Fact, FakeEngine, PATIENCE, kind_ref, task};
use crate::worker::{run, run_with, scripted};
use converge_broker::BrokerConfig;
use converge_engine::dispatch::TaskResult;
use converge_sdk::{Outcome, Request, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

#[tokio::test(flavor = "multi_thread")]
async fn no_worker_is_ever_sent_more_tasks_than_it_has_slots() {
    const SLOTS: usize = 4;
    let engine = FakeEngine::new(&["a", "b", "c"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let mut peaks = Vec::new();
    let mut workers = Vec::new();
    for _ in 0..3 {
        let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        peaks.push(Arc::clone(&peak));
        let providers = ["a", "b", "c"].map(|kind| {
            let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
            scripted(kind, move |_| {
                let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
                async move {
                    peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok(Outcome::new())
                }
            })
        });
        let builder = Worker::builder().broker(server.address.to_string()).max_parallel(SLOTS);
        workers.push(run_with(providers.into(), builder));
    }
    let mut fences = Vec::new();
    for index in 0..120 {
        for kind in ["a", "b", "c"] {
            fences.push(engine.enqueue(task(kind, &index.to_string())));
        }
    }
    for fence in fences {
        engine.recorded(fence).await;
    }
    let peaks: Vec<usize> = peaks.iter().map(|peak| peak.load(Ordering::SeqCst)).collect();
    assert!(peaks.iter().all(|peak| (1..=SLOTS).contains(peak)), "{peaks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_whose_tasks_never_end_does_not_starve_another() {
    let engine = FakeEngine::new(&["fast", "slow"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let (start, mut started) = mpsc::unbounded_channel();
    let slow = scripted("slow", move |_| {
        start.send(()).unwrap();
        std::future::pending()
    });
    let builder = Worker::builder().broker(server.address.to_string()).max_parallel(4);
    let _worker = run_with(vec![slow, scripted("fast", async |_| Ok(Outcome::new()))], builder);
    for index in 0..20 {
        engine.enqueue(task("slow", &index.to_string()));
    }
    for _ in 0..3 {
        tokio::time::timeout(PATIENCE, started.recv()).await.unwrap();
    }
    // The slow kind has all that it can get, and wants more.
    for index in 0..50 {
        let fence = engine.enqueue(task("fast", &index.to_string()));
        engine.recorded(fence).await;
    }
    assert!(started.try_recv().is_err(), "the slot kept for the fast kind was not given to the slow one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missed_deadline_is_one_transient_failure_and_frees_the_slot() {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let provider = scripted("vpc", move |request: Request| {
        let tell = tell.clone();
        async move {
            if request.name == "wedged" {
                request.cancelled.cancelled().await;
                tell.send(()).unwrap();
            }
            Ok(Outcome::new())
        }
    });
    let builder = Worker::builder().broker(server.address.to_string()).max_parallel(1);
    let _worker = run_with(vec![provider], builder);
    let mut wedged = task("vpc", "wedged");
    wedged.deadline_ms = Some(250);
    let wedged = engine.enqueue(wedged);
    let next = engine.enqueue(task("vpc", "next"));
    let (result, _) = engine.recorded(wedged).await;
    let TaskResult::Failure { message, terminal, .. } = result else { panic!("{result:?}") };
    assert_eq!((message.as_str(), terminal), ("task deadline of 0.25 s exceeded", false));
    engine.recorded(next).await;
    // The handler was told, and its own late answer changed nothing.
    tokio::time::timeout(PATIENCE, told.recv()).await.unwrap();
    let after = engine.enqueue(task("vpc", "after"));
    engine.recorded(after).await;
    assert_eq!(engine.outcomes_of(wedged), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn wakeups_that_were_missed_are_made_up_for() {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let _worker = run(&server, vec![scripted("vpc", async |_| Ok(Outcome::new()))]);
    engine.served(&[("vpc", 1)]).await;
    // Far more wakeups than the channel holds: the receiver lags and must look at every kind.
    let fences: Vec<_> = (0..2000).map(|i| engine.enqueue(task("vpc", &i.to_string()))).collect();
    for fence in fences {
        engine.recorded(fence).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_broker_asks_the_engine_nothing() {
    let engine = FakeEngine::new(&["idle", "vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    let handle = |kind: &str| scripted(kind, async |_| Ok(Outcome::new()));
    let _worker = run(&server, vec![handle("vpc"), handle("idle")]);
    let fence = engine.enqueue(task("vpc", "a"));
    engine.recorded(fence).await;
    let claims = |engine: &FakeEngine| {
        let facts = engine.facts();
        // Each kind was asked until it had less than was asked for.
        for kind in ["vpc", "idle"].map(kind_ref) {
            let last = facts.iter().rev().find_map(|fact| match fact {
                Fact::Claimed { kind: of, limit, given } if *of == kind => Some(given < limit),
                _ => None,
            });
            assert_eq!(last, Some(true), "{kind}");
        }
        facts.iter().filter(|fact| matches!(fact, Fact::Claimed { .. })).count()
    };
    // Lets the claims that the last outcome caused come in.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = claims(&engine);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(claims(&engine), before);
}
