//! `fanout`: one root, N children of four kinds with edges and value flows, until the root is Ready; and the same with many
//! roots, which is `forest`. The clock runs from the first `apply` until the last root is Ready: the composer's output,
//! its check, its writing, every child's work and flow, and the rollup over the settled subtree lie in between.

use serde::Serialize;

use super::args::TreeArgs;
use super::cost::{Cost, Meter};
use super::floor::{self, Floor};
use super::log::{self, Appended};
use super::machine::Machine;
use super::probe::{Probe, Probed};
use super::processes::Processes;
use super::report::Report;
use super::server::BenchServer;
use super::tree::{self, Trees};

/// What the engine did.
#[derive(Debug, Serialize)]
struct Fanout {
    /// Children of all roots.
    n: u32,
    roots: u32,
    rollup: bool,
    max_parallel: u32,
    /// Until the last `apply` was answered.
    applied_seconds: f64,
    /// Until the last root was Ready.
    seconds: f64,
    children_per_second: f64,
    /// `children_per_second` over the floor's `cycles_per_second`: the figure.
    ratio: f64,
    #[serde(flatten)]
    appended: Appended,
    #[serde(flatten)]
    cost: Cost,
    /// None: it was switched off.
    probe: Option<Probed>,
    floor: Floor,
}

/// `converge bench fanout`.
pub async fn scenario(args: TreeArgs) -> anyhow::Result<()> {
    let children = args.n;
    run("fanout", args, children).await
}

/// The scenario with `children` below each root.
pub async fn run(scenario: &'static str, args: TreeArgs, children: u32) -> anyhow::Result<()> {
    let common = &args.engine.common;
    let measure = async |server: &BenchServer| {
        let floor = floor::beside(server, args.n).await?;
        measure(&args, children, server, floor).await
    };
    let (result, postgres) = BenchServer::with(common, measure).await?;
    let lines = result.lines();
    Report { scenario, machine: Machine::look(), postgres, result }.print(common.json, &lines)
}

async fn measure(
    args: &TreeArgs,
    children: u32,
    server: &BenchServer,
    floor: Floor,
) -> anyhow::Result<Fanout> {
    let engine = &args.engine;
    let trees = Trees { prefix: "root-", n: args.n, children, rollup: !args.no_rollup, seed: engine.seed };
    let processes = Processes::start(server.url(), engine.max_parallel, None).await?;
    let client = processes.client()?;
    tree::apply_kinds(&client, trees.rollup).await?;
    let before = log::end(server).await?;

    let target = trees.clone();
    let probe =
        Probe::start(server, &processes, &args.probe, engine, args.n, move |number| target.target(number));
    let probe = probe.await?;
    let meter = Meter::start(server, &processes).await?;
    let grown = trees.grow(&processes, 0, engine.timeout).await?;
    let end = log::end(server).await?;
    if let Some(probe) = &probe {
        probe.stop();
    }
    let cost = meter.stop(server, args.n).await?;
    let probe = match probe {
        Some(probe) => Some(probe.probed(server, end).await?),
        None => None,
    };

    let span = trees.check(server, &client, before).await?;
    processes.stop().await?;
    let rate = f64::from(args.n) / grown.seconds;
    Ok(Fanout {
        n: args.n,
        roots: trees.roots(),
        rollup: trees.rollup,
        max_parallel: engine.max_parallel,
        applied_seconds: grown.applied_seconds,
        seconds: grown.seconds,
        children_per_second: rate,
        ratio: rate / floor.cycles_per_second,
        appended: span.appended(grown.seconds),
        cost,
        probe,
        floor,
    })
}

impl Fanout {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let rollup = if self.rollup { "with" } else { "without" };
        let mut lines = vec![
            ("resources", format!("{} children of {} roots, {rollup} rollup", self.n, self.roots)),
            (
                "time",
                format!("{:.2} s, the last apply answered after {:.2} s", self.seconds, self.applied_seconds),
            ),
            ("rate", format!("{:.0} children/s", self.children_per_second)),
            self.floor.line(),
            ("ratio", format!("{:.3}", self.ratio)),
        ];
        lines.extend(self.appended.lines());
        lines.extend(self.probe.iter().flat_map(Probed::lines));
        lines.extend(self.cost.lines());
        lines
    }
}
