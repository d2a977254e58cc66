//! `converge bench`: what the engine does per second, beside what the same PostgreSQL does per second for plain SQL.
//!
//! A rate alone says more about the machine than about the engine. So every scenario that gives a rate first measures the
//! *floor* (the same rows written by nothing but batched SQL) on the same server in the same run, and the figure
//! worth comparing is the ratio of the two. Every scenario counts its result in the log before it prints a figure, and
//! gives none when anything was lost or done twice. `docs/benchmarks.md` records runs.

mod args;
mod churn;
mod cost;
mod fanout;
mod floor;
mod forest;
mod idle;
mod latency;
mod load;
mod log;
mod machine;
mod phases;
mod probe;
mod processes;
mod random;
mod reconcile;
mod report;
mod samples;
mod server;
mod socket;
mod tree;
mod watch;
mod worker;

pub use args::BenchArgs;
use args::Scenario;
pub use worker::{NOOP_WORKER, noop_worker};

/// Runs one scenario.
///
/// # Errors
/// When the server, the engine or the worker cannot be started, a statement fails, the run does not finish in time, or the
/// log does not show what the run should have done.
pub async fn run(args: BenchArgs) -> anyhow::Result<()> {
    match args.scenario {
        Scenario::Floor(args) => floor::scenario(args).await,
        Scenario::Reconcile(args) => reconcile::scenario(args).await,
        Scenario::Fanout(args) => fanout::scenario(args).await,
        Scenario::Forest(args) => forest::scenario(args).await,
        Scenario::Churn(args) => churn::scenario(args).await,
        Scenario::Latency(args) => latency::scenario(args).await,
        Scenario::Idle(args) => idle::scenario(args).await,
        Scenario::Watch(args) => watch::scenario(args).await,
    }
}
