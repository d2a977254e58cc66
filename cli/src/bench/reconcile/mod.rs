//! `reconcile`: the whole way of a resource through real processes. N leaf resources are applied through GraphQL; a
//! server process decides and stores; a worker process, connected by gRPC, does nothing as fast as it can. The clock
//! runs from the first `apply` until the last resource is Ready.
//!
//! The floor is measured first, on the same server; the log is counted afterwards, so that a run which lost or doubled
//! anything gives no figure.

mod load;
mod processes;
mod worker;

use std::time::Instant;

use anyhow::ensure;
use serde::Serialize;
use sqlx::{Connection, Row};

use self::processes::Processes;
pub use self::worker::{NOOP_WORKER, noop_worker};
use super::ReconcileArgs;
use super::floor::{self, Floor};
use super::machine::{Machine, Memory};
use super::report::Report;
use super::server::BenchServer;

/// The floor needs some seconds to be a figure, and no more than that.
const FLOOR_N: std::ops::RangeInclusive<u32> = 20_000..=100_000;

/// What the engine did.
#[derive(Debug, Serialize)]
struct Reconcile {
    n: u32,
    batch: u32,
    clients: u32,
    max_parallel: u32,
    /// Until the last `apply` was answered.
    applied_seconds: f64,
    /// Until the last resource was Ready.
    seconds: f64,
    reconciles_per_second: f64,
    /// Appended in that time, events of the kind's manifest aside.
    events: i64,
    events_per_second: f64,
    /// Append calls that wrote them.
    batches: i64,
    /// `reconciles_per_second` over the floor's `cycles_per_second`: the figure.
    ratio: f64,
    memory: ProcessMemory,
    floor: Floor,
}

/// Of each process, at the end of the run.
#[derive(Debug, Serialize)]
struct ProcessMemory {
    server: Memory,
    worker: Memory,
    /// All its processes together, each shared page once; None when the server is not ours to look at.
    postgres_pss_kib: Option<u64>,
}

/// `converge bench reconcile`.
pub async fn scenario(args: ReconcileArgs) -> anyhow::Result<()> {
    let server = BenchServer::open(&args.common).await?;
    let postgres = server.settings().await?;
    let floor = floor::measure(&server, args.n.clamp(*FLOOR_N.start(), *FLOOR_N.end()), 500, 2).await?;
    let result = measure(&args, &server, floor).await?;
    server.close().await?;
    let lines = result.lines();
    Report { scenario: "reconcile", machine: Machine::look(), postgres, result }
        .print(args.common.json, &lines)
}

async fn measure(args: &ReconcileArgs, server: &BenchServer, floor: Floor) -> anyhow::Result<Reconcile> {
    let processes = Processes::start(server.url(), args.max_parallel).await?;
    let client = processes.client()?;
    load::apply_kind(&client).await?;
    let before = log(server).await?;

    let start = Instant::now();
    let applied_seconds = load::apply_leaves(&client, args.n, args.batch, args.clients).await?.as_secs_f64();
    processes.all_ready(args.n, start, args.timeout).await?;
    let seconds = start.elapsed().as_secs_f64();

    let after = log(server).await?;
    check(&after, args.n)?;
    let memory = ProcessMemory {
        server: Memory::of(processes.server_pid()?),
        worker: Memory::of(processes.worker_pid()?),
        postgres_pss_kib: server.pid().map(Memory::of_tree),
    };
    processes.stop().await?;

    let events = after.events - before.events;
    let rate = f64::from(args.n) / seconds;
    #[expect(clippy::cast_precision_loss, reason = "a count far below 2^52")]
    Ok(Reconcile {
        n: args.n,
        batch: args.batch,
        clients: args.clients,
        max_parallel: args.max_parallel,
        applied_seconds,
        seconds,
        reconciles_per_second: rate,
        events,
        events_per_second: events as f64 / seconds,
        batches: after.batches - before.batches,
        ratio: rate / floor.cycles_per_second,
        memory,
        floor,
    })
}

/// The log in numbers.
struct Log {
    events: i64,
    last: i64,
    created: i64,
    worked: i64,
    batches: i64,
}

async fn log(server: &BenchServer) -> anyhow::Result<Log> {
    let mut connection = server.connect().await?;
    let row = sqlx::query(include_str!("log.sql")).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(Log {
        events: row.try_get("events")?,
        last: row.try_get("last")?,
        created: row.try_get("created")?,
        worked: row.try_get("worked")?,
        batches: row.try_get("batches")?,
    })
}

/// A rate of work that was lost or done twice is no rate.
fn check(log: &Log, n: u32) -> anyhow::Result<()> {
    let n = i64::from(n);
    ensure!(log.events == log.last, "the log has gaps: {} events, the last at {}", log.events, log.last);
    ensure!(log.created == n, "{} resources were created and not {n}", log.created);
    ensure!(log.worked == n, "{} resources were worked and not {n}", log.worked);
    Ok(())
}

impl Reconcile {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mib =
            |memory: &Memory| format!("{} MiB (peak {})", memory.rss_kib / 1024, memory.peak_rss_kib / 1024);
        let memory = &self.memory;
        let mut lines = vec![
            ("resources", format!("{} in applies of {}, {} at a time", self.n, self.batch, self.clients)),
            (
                "time",
                format!("{:.2} s, the last apply answered after {:.2} s", self.seconds, self.applied_seconds),
            ),
            ("reconcile", format!("{:.0} reconciles/s", self.reconciles_per_second)),
            (
                "events",
                format!(
                    "{} in {} batches, {:.0} events/s",
                    self.events, self.batches, self.events_per_second
                ),
            ),
            ("floor", format!("{:.0} cycles/s (n = {})", self.floor.cycles_per_second, self.floor.n)),
            ("ratio", format!("{:.3}", self.ratio)),
            ("server", mib(&memory.server)),
            ("worker", mib(&memory.worker)),
        ];
        lines.extend(memory.postgres_pss_kib.map(|kib| ("postgres", format!("{} MiB in all", kib / 1024))));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(events: i64, last: i64, created: i64, worked: i64) -> Log {
        Log { events, last, created, worked, batches: 1 }
    }

    #[test]
    fn a_run_that_lost_or_doubled_work_gives_no_figure() {
        assert!(check(&log(31, 31, 10, 10), 10).is_ok());
        assert!(check(&log(31, 31, 10, 9), 10).is_err());
        assert!(check(&log(31, 31, 10, 11), 10).is_err());
        assert!(check(&log(31, 31, 9, 10), 10).is_err());
    }

    #[test]
    fn a_log_with_gaps_gives_no_figure() {
        assert!(check(&log(30, 31, 10, 10), 10).is_err());
    }
}
