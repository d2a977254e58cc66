//! What a broker does with a worker that does not keep to the protocol.

use crate::engine::{self, Fact, FakeEngine, PATIENCE, Server, task};
use converge_broker::BrokerConfig;
use converge_engine::dispatch::{Fence, Recorded, TaskResult};
use converge_protocol::v1::{self, broker_client::BrokerClient, down, up};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

/// A worker made of bare frames.
struct Raw {
    up: mpsc::Sender<v1::Up>,
    down: Streaming<v1::Down>,
}

impl Raw {
    async fn connect(server: &Server) -> Self {
        let mut client = BrokerClient::connect(format!("http://{}", server.address)).await.unwrap();
        let (up, frames) = mpsc::channel(64);
        let down = client.work(ReceiverStream::new(frames)).await.unwrap().into_inner();
        Self { up, down }
    }

    async fn subscribed(server: &Server) -> Self {
        let mut raw = Self::connect(server).await;
        raw.say(up::Frame::Subscribe(subscribe())).await;
        assert!(matches!(raw.hear().await, Ok(Some(down::Frame::Subscribed(_)))));
        raw
    }

    async fn say(&self, frame: up::Frame) {
        self.up.send(v1::Up { frame: Some(frame) }).await.unwrap();
    }

    async fn hear(&mut self) -> Result<Option<down::Frame>, Status> {
        let message = tokio::time::timeout(PATIENCE, self.down.message()).await.expect("nothing came");
        Ok(message?.and_then(|message| message.frame))
    }

    /// The next frame that `pick` wants; others are passed over.
    async fn hear_until<T>(&mut self, pick: impl Fn(down::Frame) -> Option<T>) -> T {
        loop {
            let frame = self.hear().await.expect("the stream stands").expect("the stream stands");
            if let Some(picked) = pick(frame) {
                return picked;
            }
        }
    }

    async fn hear_task(&mut self) -> v1::Task {
        self.hear_until(|frame| match frame {
            down::Frame::Task(task) => Some(task),
            _ => None,
        })
        .await
    }

    async fn end(mut self) -> Status {
        loop {
            match self.hear().await {
                Err(status) => return status,
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream ended without a reason"),
            }
        }
    }
}

fn subscribe() -> v1::Subscribe {
    v1::Subscribe {
        worker_name: "raw".to_owned(),
        serves: vec![v1::Served { kind: "vpc".to_owned(), ready: true, ..v1::Served::default() }],
        max_inflight: 2,
        running: Vec::new(),
        revision: 1,
    }
}

fn wire(fence: &Fence) -> v1::Fence {
    v1::Fence {
        resource_id: fence.id.to_string(),
        epoch: fence.epoch.0,
        claim_id: fence.claim_id.to_string(),
    }
}

fn success(fence: v1::Fence, success: v1::Success) -> up::Frame {
    up::Frame::Outcome(v1::Outcome {
        fence: Some(fence),
        result: Some(v1::outcome::Result::Success(success)),
        kind: "vpc".to_owned(),
        kind_version: 1,
    })
}

async fn start() -> (std::sync::Arc<FakeEngine>, Server) {
    let engine = FakeEngine::new(&["vpc"]);
    let server = engine::start(&engine, BrokerConfig::default()).await;
    (engine, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_makes_no_sense_ends_the_stream_with_the_reason() {
    let (_engine, server) = start().await;
    let with = |change: fn(&mut v1::Subscribe)| {
        let mut frame = subscribe();
        change(&mut frame);
        up::Frame::Subscribe(frame)
    };
    let fence = || v1::Fence { resource_id: "x".to_owned(), epoch: 1, claim_id: "y".to_owned() };
    let cases = [
        (up::Frame::Heartbeat(v1::Heartbeat::default()), Code::FailedPrecondition, "must be a Subscribe"),
        (with(|s| s.revision = 99), Code::FailedPrecondition, "revision 99"),
        (with(|s| s.serves.clear()), Code::InvalidArgument, "1 to 4096 providers"),
        (with(|s| s.serves[0].kind.clear()), Code::InvalidArgument, "must name a kind or a provider"),
        (with(|s| s.serves[0].versions.push(0)), Code::InvalidArgument, "`0` is not a kind version"),
        (with(|s| s.serves[0].versions.push(40_000)), Code::InvalidArgument, "`40000` is not a kind version"),
        (with(|s| s.max_inflight = 0), Code::InvalidArgument, "at least 1"),
        (
            {
                let mut frame = subscribe();
                let running = v1::Running {
                    fence: Some(fence()),
                    kind: "vpc".to_owned(),
                    kind_version: 1,
                    deadline_ms: 0,
                };
                frame.running.push(running);
                up::Frame::Subscribe(frame)
            },
            Code::InvalidArgument,
            "`x` is not a uuid",
        ),
    ];
    for (frame, code, words) in cases {
        let raw = Raw::connect(&server).await;
        raw.say(frame).await;
        let status = raw.end().await;
        assert!(status.code() == code && status.message().contains(words), "{words}: {status}");
    }
    let raw = Raw::subscribed(&server).await;
    raw.say(up::Frame::Subscribe(subscribe())).await;
    assert_eq!(raw.end().await.code(), Code::FailedPrecondition);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_says_nothing_is_closed() {
    let engine = FakeEngine::new(&["vpc"]);
    let config = BrokerConfig { subscribe_timeout: Duration::from_millis(50), ..BrokerConfig::default() };
    let server = engine::start(&engine, config).await;
    let raw = Raw::connect(&server).await;
    assert_eq!(raw.end().await.code(), Code::DeadlineExceeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_about_nothing_are_ignored_and_the_worker_is_served_all_the_same() {
    let (engine, server) = start().await;
    let mut raw = Raw::subscribed(&server).await;
    let nonsense = v1::Fence { resource_id: "not".to_owned(), epoch: 1, claim_id: "uuids".to_owned() };
    raw.say(up::Frame::Heartbeat(v1::Heartbeat { progressing: vec![nonsense.clone()] })).await;
    raw.say(up::Frame::InputTaken(v1::InputTaken { fence: None, index: 3 })).await;
    raw.say(success(nonsense.clone(), v1::Success::default())).await;
    raw.say(up::Frame::Outcome(v1::Outcome::default())).await;
    let chunk = v1::OutcomeChunk { fence: Some(nonsense), index: 7, part: "?".to_owned(), items: vec![] };
    raw.say(up::Frame::Chunk(chunk)).await;
    raw.up.send(v1::Up { frame: None }).await.unwrap();

    let fence = engine.enqueue(task("vpc", "a"));
    let got = raw.hear_task().await;
    assert_eq!(got.fence, Some(wire(&fence)));
    raw.say(success(wire(&fence), v1::Success::default())).await;
    assert_eq!(engine.recorded(fence).await.1, Recorded::Accepted);
    let accepted = raw.hear_until(|frame| match frame {
        down::Frame::Received(received) => Some(received.accepted),
        _ => None,
    });
    assert!(accepted.await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_for_a_claim_that_is_not_live_is_recorded_as_fenced_and_a_heartbeat_for_one_is_cancelled()
{
    let (engine, server) = start().await;
    let mut raw = Raw::subscribed(&server).await;
    let stale = task("vpc", "stale").fence;
    raw.say(success(wire(&stale), v1::Success::default())).await;
    assert_eq!(engine.recorded(stale).await.1, Recorded::Fenced);
    let received = raw.hear_until(|frame| match frame {
        down::Frame::Received(received) => Some((received.fence, received.accepted)),
        _ => None,
    });
    assert_eq!(received.await, (Some(wire(&stale)), false));

    raw.say(up::Frame::Heartbeat(v1::Heartbeat { progressing: vec![wire(&stale)] })).await;
    let cancelled = raw.hear_until(|frame| match frame {
        down::Frame::Cancel(cancel) => Some((cancel.fence, cancel.reason)),
        _ => None,
    });
    assert_eq!(cancelled.await, (Some(wire(&stale)), "claim lost".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_its_worker_does_not_attest_goes_to_another() {
    let engine = FakeEngine::new(&["vpc"]);
    let config = BrokerConfig { lease: Duration::from_millis(300), ..BrokerConfig::default() };
    let server = engine::start(&engine, config).await;
    let mut raw = Raw::subscribed(&server).await;
    let fence = engine.enqueue(task("vpc", "a"));
    raw.hear_task().await;
    assert_eq!(engine.released(fence).await, "the worker did not attest its progress");
    let reason = raw.hear_until(|frame| match frame {
        down::Frame::Cancel(cancel) => Some(cancel.reason),
        _ => None,
    });
    assert_eq!(reason.await, "claim lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversize_frame_ends_the_stream() {
    let (engine, server) = start().await;
    let mut raw = Raw::subscribed(&server).await;
    let fence = engine.enqueue(task("vpc", "a"));
    raw.hear_task().await;
    let items = vec![vec![b' '; 2 * converge_protocol::FRAME_BYTES_MAX].into()];
    let chunk = v1::OutcomeChunk { fence: Some(wire(&fence)), index: 0, part: "children".to_owned(), items };
    raw.say(up::Frame::Chunk(chunk)).await;
    let status = raw.end().await;
    assert!(status.code() == Code::InvalidArgument && status.message().contains("the limit is"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composition_that_lost_a_frame_is_a_transient_failure_and_prunes_nothing() {
    let (engine, server) = start().await;
    let mut raw = Raw::subscribed(&server).await;
    let counts = v1::Success { chunks: 2, children: 2, ..v1::Success::default() };
    for (name, indexes, words) in [
        ("gap", vec![0, 2], "frame 2 came where 1 was due"),
        ("short", vec![0], "1 of 2 frames, 1 of 2 children"),
        ("none", vec![], "0 of 2 frames, 0 of 2 children"),
    ] {
        let fence = engine.enqueue(task("vpc", name));
        raw.hear_task().await;
        for index in indexes {
            let items = vec!["{}".into()];
            let chunk =
                v1::OutcomeChunk { fence: Some(wire(&fence)), index, part: "children".to_owned(), items };
            raw.say(up::Frame::Chunk(chunk)).await;
        }
        raw.say(success(wire(&fence), counts.clone())).await;
        let (result, _) = engine.recorded(fence).await;
        let TaskResult::Failure { message, terminal: false, .. } = result else { panic!("{result:?}") };
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_whose_json_is_none_is_a_transient_failure() {
    let (engine, server) = start().await;
    let mut raw = Raw::subscribed(&server).await;
    for (parts, words) in [
        (v1::Success { status: Some("[1]".into()), ..v1::Success::default() }, "not a JSON object"),
        (v1::Success { conditions: Some("{".into()), ..v1::Success::default() }, "conditions are not valid"),
    ] {
        let fence = engine.enqueue(task("vpc", words));
        raw.hear_task().await;
        raw.say(success(wire(&fence), parts)).await;
        let (result, _) = engine.recorded(fence).await;
        let TaskResult::Failure { message, terminal: false, .. } = result else { panic!("{result:?}") };
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_comes_before_the_task_that_was_decided_under_it_and_only_once() {
    let (engine, server) = start().await;
    let mut raw = Raw::subscribed(&server).await;
    let (mut one, mut two) = (task("vpc", "one"), task("vpc", "two"));
    // Known to the task before any announcement reached the broker.
    let mut config = engine.set_default("vpc", 1, "{}");
    config.version = 2;
    (one.default_config, two.default_config) = (Some(config.clone()), Some(config));
    engine.enqueue(one);
    engine.enqueue(two);
    let (mut heard, mut tasks) = (Vec::new(), 0);
    while tasks < 2 {
        match raw.hear().await.unwrap().unwrap() {
            down::Frame::Config(config) => heard.push(config.config.map(|config| config.version)),
            down::Frame::Task(_) => {
                assert_eq!(heard.last(), Some(&Some(2)), "a task overtook its config");
                tasks += 1;
            }
            _ => {}
        }
    }
    let twos = heard.iter().filter(|version| **version == Some(2)).count();
    assert_eq!(twos, 1, "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_staged_for_a_claim_that_the_worker_does_not_hold() {
    let (engine, server) = start().await;
    let mut raw = Raw::subscribed(&server).await;
    let stale = task("vpc", "stale").fence;
    let chunk = v1::OutcomeChunk {
        fence: Some(wire(&stale)),
        index: 0,
        part: "children".to_owned(),
        items: vec!["{}".into()],
    };
    raw.say(up::Frame::Chunk(chunk)).await;
    let fence = engine.enqueue(task("vpc", "a"));
    raw.hear_task().await;
    raw.say(success(wire(&fence), v1::Success::default())).await;
    engine.recorded(fence).await;
    assert!(!engine.facts().iter().any(|fact| matches!(fact, Fact::Staged(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_broker_tells_its_workers_to_come_back() {
    let (_engine, server) = start().await;
    let raw = Raw::subscribed(&server).await;
    server.shutdown.cancel();
    let status = raw.end().await;
    assert!(status.code() == Code::Unavailable && status.message().contains("reconnect"), "{status}");
    server.ended.await.unwrap();
}
