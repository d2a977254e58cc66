//! `churn`: on a settled forest 1 % of the specs are edited; 1 % again, and when half of them are worked the worker is
//! killed as nothing can be handled, and another started; then everything is deleted. Each is a rate, and of all of it nothing
//! may be lost and nothing done twice: that is counted in the log (each generation worked once, each finalizer stripped
//! once) and in the worker's own ledger (each decision carried out under one idempotency key).
//!
//! Specs of children are their composer's, so an edit is a new edition of every root, whose composer then changes 1 % of
//! its children. What the specification also asks for, a resync of all, comes with periodic observation.

mod deleted;
mod edited;

use serde::Serialize;

use self::deleted::Deleted;
use self::edited::Edited;
use super::args::{ForestArgs, TreeArgs};
use super::floor::{self, Floor};
use super::log;
use super::machine::Machine;
use super::processes::Processes;
use super::report::Report;
use super::server::BenchServer;
use super::tree::{self, Trees};
use super::worker::Effects;

/// How long the work of an edited child takes at least where the worker is to be killed in it, in milliseconds.
const PAUSE_MS: u64 = 25;

/// What became of it.
#[derive(Debug, Serialize)]
struct Churn {
    n: u32,
    roots: u32,
    edit: Edited,
    edit_with_kill: Edited,
    /// What is not measured, and why.
    resync_all: &'static str,
    delete_all: Deleted,
    /// Decisions that are in the log and not in the ledger, or the other way round.
    lost: u32,
    /// Decisions carried out under more than one key.
    doubled: usize,
    /// Deliveries of a task that had been carried out before its answer was lost; an idempotent outside knows them.
    redelivered: usize,
    floor: Floor,
}

/// `converge bench churn`.
pub async fn scenario(args: ForestArgs) -> anyhow::Result<()> {
    let common = &args.tree.engine.common;
    let measure = async |server: &BenchServer| {
        let floor = floor::beside(server, args.tree.n).await?;
        measure(&args.tree, args.children, server, floor).await
    };
    let (result, postgres) = BenchServer::with(common, measure).await?;
    let lines = result.lines();
    Report { scenario: "churn", machine: Machine::look(), postgres, result }.print(common.json, &lines)
}

async fn measure(
    args: &TreeArgs,
    children: u32,
    server: &BenchServer,
    floor: Floor,
) -> anyhow::Result<Churn> {
    let engine = &args.engine;
    let trees = Trees { prefix: "root-", n: args.n, children, rollup: !args.no_rollup, seed: engine.seed };
    let folder = tempfile::tempdir()?;
    let ledger = folder.path().join("ledger");
    let mut processes = Processes::start(server.url(), engine.max_parallel, Some(&ledger)).await?;
    let client = processes.client()?;
    tree::apply_kinds(&client, trees.rollup).await?;
    let before = log::end(server).await?;
    trees.grow(&processes, 0, engine.timeout).await?;
    trees.check(server, &client, before).await?;

    let edit = edited::run(&trees, server, &mut processes, 2, None, engine.timeout).await?;
    let edit_with_kill =
        edited::run(&trees, server, &mut processes, 3, Some(PAUSE_MS), engine.timeout).await?;
    let delete_all = deleted::run(&trees, server, &processes, engine.timeout).await?;
    processes.stop().await?;

    let effects = Effects::read(&ledger)?;
    let decisions = [
        (effects.worked, trees.n + edit.specs + edit_with_kill.specs),
        (effects.torn_down, trees.n + trees.roots()),
    ];
    let lost =
        decisions.into_iter().map(|(seen, due)| u32::try_from(seen).unwrap_or(u32::MAX).abs_diff(due)).sum();
    anyhow::ensure!(
        lost == 0 && effects.doubled == 0,
        "the ledger and the log differ in {lost} decisions, {} were carried out twice: {effects:?}",
        effects.doubled
    );
    Ok(Churn {
        n: trees.n,
        roots: trees.roots(),
        edit,
        edit_with_kill,
        resync_all: "not measured: it comes with periodic observation",
        delete_all,
        lost,
        doubled: effects.doubled,
        redelivered: effects.redelivered,
        floor,
    })
}

impl Churn {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("resources", format!("{} children of {} roots", self.n, self.roots))];
        lines.push(("edit 1 %", self.edit.to_string()));
        lines.push(("with a kill", self.edit_with_kill.to_string()));
        lines.push(("resync all", self.resync_all.to_owned()));
        lines.push(("delete all", self.delete_all.to_string()));
        lines.push((
            "side effects",
            format!("{} lost, {} doubled, {} delivered again", self.lost, self.doubled, self.redelivered),
        ));
        lines.push(self.floor.line());
        for (name, cost) in [("edit", &self.edit.cost), ("delete", &self.delete_all.cost)] {
            lines.push(("", format!("{name}:")));
            lines.extend(cost.lines());
        }
        lines
    }
}
