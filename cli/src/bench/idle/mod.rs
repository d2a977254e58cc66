//! `idle`: N Ready resources and nothing to do. What the engine costs then is what it costs for ever.
//!
//! The clock starts when the read models have reached the end of the log and the processes had a moment to come to rest. Nobody
//! asks anything meanwhile, this program included: what is counted is what the engine does by itself.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;
use sqlx::{Connection, Row};

use super::args::IdleArgs;
use super::cost::{Cost, Meter};
use super::log;
use super::machine::Machine;
use super::processes::Processes;
use super::report::Report;
use super::server::BenchServer;
use super::worker::{LEAF, leaf_kind};
use super::{load, phases};

/// Between the end of the work and the start of the clock.
const REST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 1 } else { 5 });
const POLL: Duration = Duration::from_millis(100);

/// What nothing costs.
#[derive(Debug, Serialize)]
struct Idle {
    n: u32,
    seconds: f64,
    /// Of one core, in percent.
    server_cpu_percent: f64,
    worker_cpu_percent: f64,
    postgres_cpu_percent: Option<f64>,
    /// Statements, or transactions where `statements.source` says so.
    statements_per_second: f64,
    wal_bytes_per_second: f64,
    /// Appended meanwhile: with nothing due there must be none.
    events: i64,
    #[serde(flatten)]
    cost: Cost,
}

/// `converge bench idle`.
pub async fn scenario(args: IdleArgs) -> anyhow::Result<()> {
    let common = &args.engine.common;
    let measure = async |server: &BenchServer| measure(&args, server).await;
    let (result, postgres) = BenchServer::with(common, measure).await?;
    let lines = result.lines();
    Report { scenario: "idle", machine: Machine::look(), postgres, result }.print(common.json, &lines)
}

async fn measure(args: &IdleArgs, server: &BenchServer) -> anyhow::Result<Idle> {
    let engine = &args.engine;
    let processes = Processes::start(server.url(), engine.max_parallel, None).await?;
    let client = processes.client()?;
    load::apply(&client, vec![leaf_kind()]).await?;
    let before = log::end(server).await?;
    load::apply_all(&client, &args.load, args.n, load::leaf, "created").await?;
    phases::wait(&processes, engine.timeout, |phases| phases.of(LEAF, "Ready") == u64::from(args.n)).await?;
    let span = log::Span::behind(server, before).await?;
    span.once_each("Worked", args.n)?;
    caught_up(server, engine.timeout).await?;
    tokio::time::sleep(REST).await;

    let meter = Meter::start(server, &processes).await?;
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs(args.seconds.into())).await;
    let seconds = start.elapsed().as_secs_f64();
    let cost = meter.stop(server, args.n).await?;

    let events = log::end(server).await? - span.last;
    ensure!(events == 0, "{events} events were appended although nothing was due");
    processes.stop().await?;
    let (cpu, percent) = (cost.cpu_seconds, 100.0 / seconds);
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    Ok(Idle {
        n: args.n,
        seconds,
        server_cpu_percent: cpu.server * percent,
        worker_cpu_percent: cpu.worker * percent,
        postgres_cpu_percent: cpu.postgres.map(|seconds| seconds * percent),
        statements_per_second: cost.statements.total as f64 / seconds,
        wal_bytes_per_second: cost.wal_bytes as f64 / seconds,
        events,
        cost,
    })
}

/// Waits until every read model has seen the whole log.
async fn caught_up(server: &BenchServer, timeout_seconds: u64) -> anyhow::Result<()> {
    let mut connection = server.connect().await?;
    let start = Instant::now();
    loop {
        let row = sqlx::query(include_str!("behind.sql")).fetch_one(&mut connection).await?;
        let behind: Option<i64> = row.try_get(0)?;
        match behind.context("no read model runs")? {
            0 => break,
            behind => ensure!(
                start.elapsed().as_secs() < timeout_seconds,
                "a read model is {behind} events behind after {timeout_seconds} s"
            ),
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(connection.close().await?)
}

impl Idle {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let postgres = self.postgres_cpu_percent.map_or("?".to_owned(), |percent| format!("{percent:.2}"));
        let mut lines = vec![
            ("resources", format!("{}, Ready", self.n)),
            ("time", format!("{:.0} s", self.seconds)),
            (
                "of a core",
                format!(
                    "server {:.2} %, worker {:.2} %, postgres {postgres} %",
                    self.server_cpu_percent, self.worker_cpu_percent
                ),
            ),
            ("SQL", format!("{:.2} statements/s", self.statements_per_second)),
            ("WAL", format!("{:.0} B/s", self.wal_bytes_per_second)),
        ];
        lines.extend(self.cost.lines());
        lines
    }
}
