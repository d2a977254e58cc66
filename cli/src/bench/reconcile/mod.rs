//! `reconcile`: the whole way of a resource through real processes. N leaf resources are applied through GraphQL; a
//! server process decides and stores; a worker process, connected by gRPC, does nothing as fast as it can. The clock
//! runs from the first `apply` until the last resource is Ready.
//!
//! The floor is measured first, on the same server; the log is counted afterwards, so that a run which lost or doubled
//! anything gives no figure.

use std::time::Instant;

use serde::Serialize;

use super::args::ReconcileArgs;
use super::cost::{Cost, Meter};
use super::floor::{self, Floor};
use super::log::{self, Appended, Span};
use super::machine::Machine;
use super::probe::{Probe, Probed, Target};
use super::processes::Processes;
use super::report::Report;
use super::server::BenchServer;
use super::worker::{LEAF, leaf_kind};
use super::{load, phases};

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
    /// `reconciles_per_second` over the floor's `cycles_per_second`: the figure.
    ratio: f64,
    #[serde(flatten)]
    appended: Appended,
    #[serde(flatten)]
    cost: Cost,
    /// None: it was switched off.
    probe: Option<Probed>,
    floor: Floor,
}

/// `converge bench reconcile`.
pub async fn scenario(args: ReconcileArgs) -> anyhow::Result<()> {
    let common = &args.engine.common;
    let measure = async |server: &BenchServer| {
        let floor = floor::beside(server, args.n).await?;
        measure(&args, server, floor).await
    };
    let (result, postgres) = BenchServer::with(common, measure).await?;
    let lines = result.lines();
    Report { scenario: "reconcile", machine: Machine::look(), postgres, result }.print(common.json, &lines)
}

async fn measure(args: &ReconcileArgs, server: &BenchServer, floor: Floor) -> anyhow::Result<Reconcile> {
    let engine = &args.engine;
    let processes = Processes::start(server.url(), engine.max_parallel, None).await?;
    let client = processes.client()?;
    load::apply(&client, vec![leaf_kind()]).await?;
    let before = log::end(server).await?;

    let probe = Probe::start(server, &processes, &args.probe, engine, args.n, target).await?;
    let meter = Meter::start(server, &processes).await?;
    let start = Instant::now();
    let applied = load::apply_all(&client, &args.load, args.n, load::leaf, "created").await?;
    phases::wait(&processes, engine.timeout, |phases| phases.of(LEAF, "Ready") == u64::from(args.n)).await?;
    let seconds = start.elapsed().as_secs_f64();
    let end = log::end(server).await?;
    if let Some(probe) = &probe {
        probe.stop();
    }
    let cost = meter.stop(server, args.n).await?;
    let probe = match probe {
        Some(probe) => Some(probe.probed(server, end).await?),
        None => None,
    };

    let span = Span::behind(server, before).await?;
    span.once_each("Created", args.n)?;
    span.once_each("Worked", args.n)?;
    processes.stop().await?;
    let rate = f64::from(args.n) / seconds;
    Ok(Reconcile {
        n: args.n,
        batch: args.load.batch,
        clients: args.load.clients,
        max_parallel: engine.max_parallel,
        applied_seconds: applied.as_secs_f64(),
        seconds,
        reconciles_per_second: rate,
        ratio: rate / floor.cycles_per_second,
        appended: span.appended(seconds),
        cost,
        probe,
        floor,
    })
}

fn target(number: u32) -> Target {
    let name = load::leaf_name(number);
    let prefix = name[..name.len() - 2].to_owned();
    Target { kind: LEAF.to_owned(), name, prefix }
}

impl Reconcile {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("resources", format!("{} in applies of {}, {} at a time", self.n, self.batch, self.clients)),
            (
                "time",
                format!("{:.2} s, the last apply answered after {:.2} s", self.seconds, self.applied_seconds),
            ),
            ("reconcile", format!("{:.0} reconciles/s", self.reconciles_per_second)),
            self.floor.line(),
            ("ratio", format!("{:.3}", self.ratio)),
        ];
        lines.extend(self.appended.lines());
        lines.extend(self.probe.iter().flat_map(Probed::lines));
        lines.extend(self.cost.lines());
        lines
    }
}
