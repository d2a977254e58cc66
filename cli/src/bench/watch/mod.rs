//! `watch`: subscribers with filters while a forest grows. Two figures: how late they hear of what is committed, and how
//! much slower the engine is for them.
//!
//! Three forests of the same size grow one after the other in one database: without subscribers, with them, and without
//! again, since the later ones find warmer caches and larger tables. Each subscriber must get exactly the events that
//! the log holds for its filter, in order.

mod subscribers;

use anyhow::ensure;
use serde::Serialize;
use sqlx::{Connection, Row};

use self::subscribers::{Heard, Subscribers};
use super::args::WatchArgs;
use super::cost::{Cost, Meter};
use super::floor::{self, Floor};
use super::log::{self, Appended};
use super::machine::Machine;
use super::processes::Processes;
use super::report::Report;
use super::server::BenchServer;
use super::tree::{self, Trees};
use super::worker::ROOT;

/// What subscribers heard, and what they cost.
#[derive(Debug, Serialize)]
struct Watch {
    n: u32,
    roots: u32,
    subscribers: u32,
    connections: u32,
    heard: Heard,
    /// Children per second before there were subscribers, with them, and when they were gone.
    rates: [f64; 3],
    /// The rate with subscribers over the mean of the others.
    engine_slowdown: f64,
    /// The rate with subscribers over the floor.
    ratio: f64,
    /// The forest with subscribers.
    #[serde(flatten)]
    appended: Appended,
    #[serde(flatten)]
    cost: Cost,
    cost_without: Cost,
    floor: Floor,
}

/// `converge bench watch`.
pub async fn scenario(args: WatchArgs) -> anyhow::Result<()> {
    let common = &args.forest.tree.engine.common;
    let measure = async |server: &BenchServer| {
        let floor = floor::beside(server, args.forest.tree.n).await?;
        measure(&args, server, floor).await
    };
    let (result, postgres) = BenchServer::with(common, measure).await?;
    let lines = result.lines();
    Report { scenario: "watch", machine: Machine::look(), postgres, result }.print(common.json, &lines)
}

async fn measure(args: &WatchArgs, server: &BenchServer, floor: Floor) -> anyhow::Result<Watch> {
    let (tree, engine) = (&args.forest.tree, &args.forest.tree.engine);
    let trees = |prefix| Trees {
        prefix,
        n: tree.n,
        children: args.forest.children,
        rollup: !tree.no_rollup,
        seed: engine.seed,
    };
    let processes = Processes::start(server.url(), engine.max_parallel, None).await?;
    tree::apply_kinds(&processes.client()?, !tree.no_rollup).await?;

    let first = grow(&trees("a-"), 0, server, &processes, engine.timeout).await?;
    let watched = trees("b-");
    let from = log::end(server).await?;
    let subscribers =
        Subscribers::start(processes.http(), args.subscribers, args.on_one_connection, &watched, from)
            .await?;
    let second = grow(&watched, watched.roots(), server, &processes, engine.timeout).await?;
    let expected = expected(server, &watched, from, second.end).await?;
    let heard = subscribers.finish(&expected, engine.timeout).await?;
    let third = grow(&trees("c-"), 2 * watched.roots(), server, &processes, engine.timeout).await?;
    processes.stop().await?;

    let rates = [&first, &second, &third].map(|grown| f64::from(tree.n) / grown.seconds);
    let [before, with, after] = rates;
    Ok(Watch {
        n: tree.n,
        roots: watched.roots(),
        subscribers: args.subscribers,
        connections: args.subscribers.div_ceil(args.on_one_connection),
        heard,
        rates,
        engine_slowdown: with / f64::midpoint(before, after),
        ratio: with / floor.cycles_per_second,
        appended: second.appended,
        cost: second.cost,
        cost_without: third.cost,
        floor,
    })
}

struct Grown {
    seconds: f64,
    end: i64,
    appended: Appended,
    cost: Cost,
}

async fn grow(
    trees: &Trees,
    roots_before: u32,
    server: &BenchServer,
    processes: &Processes,
    timeout: u64,
) -> anyhow::Result<Grown> {
    let before = log::end(server).await?;
    let meter = Meter::start(server, processes).await?;
    let grown = trees.grow(processes, roots_before, timeout).await?;
    let cost = meter.stop(server, trees.n).await?;
    let span = trees.check(server, &processes.client()?, before).await?;
    Ok(Grown { seconds: grown.seconds, end: span.last, appended: span.appended(grown.seconds), cost })
}

/// How many events there are of what subscribers may ask for.
#[derive(Debug, Default)]
pub struct Expected {
    /// By the beginning of names that a domain shares.
    domains: std::collections::HashMap<String, u64>,
    /// By name.
    roots: std::collections::HashMap<String, u64>,
}

async fn expected(server: &BenchServer, trees: &Trees, from: i64, to: i64) -> anyhow::Result<Expected> {
    let beginning = trees.target(0).prefix.len();
    let mut connection = server.connect().await?;
    let rows = sqlx::query(include_str!("events.sql"))
        .bind(from)
        .bind(to)
        .bind(ROOT)
        .bind(i32::try_from(beginning)?)
        .fetch_all(&mut connection)
        .await?;
    connection.close().await?;
    let mut expected = Expected::default();
    for row in rows {
        let of = if row.try_get("root")? { &mut expected.roots } else { &mut expected.domains };
        of.insert(row.try_get("beginning")?, u64::try_from(row.try_get::<i64, _>("events")?)?);
    }
    let roots = usize::try_from(trees.roots())?;
    ensure!(expected.roots.len() == roots, "{} roots are in the log and not {roots}", expected.roots.len());
    Ok(expected)
}

impl Watch {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let heard = &self.heard;
        let [before, with, after] = self.rates;
        let mut lines = vec![
            ("resources", format!("{} children of {} roots, three times", self.n, self.roots)),
            ("subscribers", format!("{} on {} connections", self.subscribers, self.connections)),
            ("delivery", format!("commit to delivered {}", heard.delivery)),
            ("heard", format!("{} events, the last {:.2} s after the end", heard.events, heard.late_seconds)),
            ("rate", format!("{with:.0} children/s; {before:.0} before, {after:.0} after")),
            ("slowdown", format!("{:.2} of the rate without subscribers", self.engine_slowdown)),
            self.floor.line(),
            ("ratio", format!("{:.3}", self.ratio)),
        ];
        lines.extend(self.appended.lines());
        lines.extend(self.cost.lines());
        lines.push((
            "without",
            format!("cpu each: server {:.0} µs a resource", self.cost_without.cpu_us_per_resource.server),
        ));
        lines
    }
}
