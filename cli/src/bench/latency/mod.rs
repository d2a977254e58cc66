//! `latency`: an idle engine and one resource at a time. Four moments are taken on one clock: the `apply` is sent, it is
//! answered, the worker has the task (it writes the time into the status), a subscriber on a WebSocket sees Ready.
//!
//! Between two resources lies a short pause of random length, so that no timer of the engine is met in step. Beside each
//! stand three bare commits on one connection: at least as many flushes lie between apply and Ready.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};

use super::args::LatencyArgs;
use super::cost::{Cost, Meter};
use super::load;
use super::log::{self, Appended, Span};
use super::machine::Machine;
use super::processes::Processes;
use super::random::Random;
use super::report::Report;
use super::samples::{Percentiles, Samples};
use super::server::BenchServer;
use super::socket::Socket;
use super::worker::{PROBE, probe_kind};
use crate::client::Client;

/// Resources that warm connections and caches, and are not counted.
const WARM_UP: u32 = 10;
const PAUSE_MS_MAX: u32 = 20;

/// How long a resource took.
#[derive(Debug, Serialize)]
struct Latency {
    n: u32,
    /// The mutation sent → answered.
    apply_to_answer: Percentiles,
    /// The mutation sent → the worker has the task.
    apply_to_worker: Percentiles,
    /// The worker has the task → the subscriber has Ready.
    worker_to_ready: Percentiles,
    /// The mutation sent → the subscriber has Ready: the figure.
    apply_to_ready: Percentiles,
    /// Three commits of one row each, one after the other on one connection.
    three_commits: Percentiles,
    #[serde(flatten)]
    appended: Appended,
    #[serde(flatten)]
    cost: Cost,
}

#[derive(Default)]
struct Legs {
    answer: Samples,
    worker: Samples,
    ready: Samples,
    total: Samples,
    commits: Samples,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    resource_changed: Change,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    name: String,
    phase: String,
    left_filter: bool,
    resource: Option<Seen>,
}

#[derive(Deserialize)]
struct Seen {
    status: Value,
}

/// `converge bench latency`.
pub async fn scenario(args: LatencyArgs) -> anyhow::Result<()> {
    let common = &args.engine.common;
    let (result, postgres) =
        BenchServer::with(common, async |server: &BenchServer| measure(&args, server).await).await?;
    let lines = result.lines();
    Report { scenario: "latency", machine: Machine::look(), postgres, result }.print(common.json, &lines)
}

async fn measure(args: &LatencyArgs, server: &BenchServer) -> anyhow::Result<Latency> {
    let engine = &args.engine;
    let processes = Processes::start(server.url(), engine.max_parallel, None).await?;
    let client = processes.client()?;
    load::apply(&client, vec![probe_kind()]).await?;
    let mut commits = server.connect().await?;
    commits.execute("CREATE TABLE bare_commit (id int)").await?;
    let mut socket = Socket::connect(processes.http()).await?;
    let from = log::end(server).await?;
    let variables = json!({ "kind": PROBE, "from": from.to_string() });
    socket.subscribe(1, include_str!("ready.graphql"), &variables).await?;

    let mut random = Random::new(engine.seed);
    let timeout = Duration::from_secs(engine.timeout);
    let mut warm_up = Legs::default();
    for number in 0..WARM_UP {
        one(&format!("warm-{number:06}"), &client, &mut socket, &mut warm_up, timeout).await?;
    }
    let before = log::end(server).await?;
    let meter = Meter::start(server, &processes).await?;
    let start = Instant::now();
    let mut legs = Legs::default();
    for number in 0..args.n {
        one(&format!("probe-{number:06}"), &client, &mut socket, &mut legs, timeout).await?;
        legs.commits.add(three_commits(&mut commits).await?);
        tokio::time::sleep(Duration::from_millis(random.below(PAUSE_MS_MAX).into())).await;
    }
    let seconds = start.elapsed().as_secs_f64();
    let cost = meter.stop(server, args.n).await?;

    let span = Span::behind(server, before).await?;
    span.once_each("Created", args.n)?;
    span.once_each("Worked", args.n)?;
    commits.close().await?;
    processes.stop().await?;
    Ok(Latency {
        n: args.n,
        apply_to_answer: legs.answer.percentiles(),
        apply_to_worker: legs.worker.percentiles(),
        worker_to_ready: legs.ready.percentiles(),
        apply_to_ready: legs.total.percentiles(),
        three_commits: legs.commits.percentiles(),
        appended: span.appended(seconds),
        cost,
    })
}

/// One resource from apply to Ready.
async fn one(
    name: &str,
    client: &Client,
    socket: &mut Socket,
    legs: &mut Legs,
    timeout: Duration,
) -> anyhow::Result<()> {
    let document = json!({
        "type": "resource", "kind": PROBE, "kind_version": 1, "name": name,
        "spec": {"cidr": "10.0.0.0/16", "region": "eu-central-1"},
    });
    let sent = since_epoch();
    // The subscriber reads while the mutation is on its way, as it would in another program.
    let (answered, ready) = tokio::join!(
        async {
            load::apply(client, vec![document]).await?;
            anyhow::Ok(since_epoch())
        },
        async { tokio::time::timeout(timeout, ready(name, socket)).await.context("it never became Ready")? }
    );
    let (answered, (worker, seen)) = (answered?, ready?);
    legs.answer.add(answered.saturating_sub(sent));
    legs.worker.add(worker.saturating_sub(sent));
    legs.ready.add(seen.saturating_sub(worker));
    legs.total.add(seen.saturating_sub(sent));
    Ok(())
}

/// When the worker had it, and when Ready was seen here.
async fn ready(name: &str, socket: &mut Socket) -> anyhow::Result<(Duration, Duration)> {
    loop {
        let (_, Data { resource_changed: change }) = socket.next().await?;
        let seen = since_epoch();
        if change.left_filter || change.phase != "Ready" || change.name != name {
            continue;
        }
        let status = change.resource.map(|resource| resource.status).unwrap_or_default();
        let micros = status["seen_us"].as_u64().context("the status tells no time")?;
        ensure!(micros > 0, "the worker has no clock");
        return Ok((Duration::from_micros(micros), seen));
    }
}

async fn three_commits(connection: &mut PgConnection) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for _ in 0..3 {
        sqlx::query("INSERT INTO bare_commit VALUES (1)").execute(&mut *connection).await?;
    }
    Ok(start.elapsed())
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Latency {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("apply → Ready", self.apply_to_ready.to_string()),
            ("apply → answer", self.apply_to_answer.to_string()),
            ("apply → worker", self.apply_to_worker.to_string()),
            ("worker → Ready", self.worker_to_ready.to_string()),
            ("three commits", self.three_commits.to_string()),
        ];
        lines.extend(self.appended.lines());
        lines.extend(self.cost.lines());
        lines
    }
}
