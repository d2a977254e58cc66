//! `converge bench`: what the engine does per second, beside what the same PostgreSQL does per second for plain SQL.
//!
//! A rate alone says more about the machine than about the engine. So every scenario first measures the *floor*
//! (the same rows written by nothing but batched SQL) on the same server in the same run, and the figure worth
//! comparing is the ratio of the two. `docs/benchmarks.md` records runs.

mod floor;
mod machine;
mod reconcile;
mod report;
mod server;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use reconcile::{NOOP_WORKER, noop_worker};

/// Arguments of `converge bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// The limit here: batched SQL that writes what the engine would write, with no engine around it.
    Floor(FloorArgs),
    /// Leaf resources applied through GraphQL and worked by a separate process, until the last is Ready.
    Reconcile(ReconcileArgs),
}

/// What every scenario takes.
#[derive(Debug, Clone, Args)]
struct CommonArgs {
    /// Print one JSON document instead of lines for people.
    #[arg(long)]
    json: bool,
    /// Use this server instead of an embedded one. A database `converge_bench` is made there and dropped.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Below this directory the embedded server's data lives for the run. Name one on the disk to be measured.
    #[arg(long)]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
struct FloorArgs {
    /// Resources: each is one insert and two updates of a head row, and three events.
    #[arg(long, default_value_t = 50_000)]
    n: u32,
    /// Resources in one transaction.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// Connections that write at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    connections: u32,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Clone, Args)]
struct ReconcileArgs {
    /// Leaf resources.
    #[arg(long, default_value_t = 10_000)]
    n: u32,
    /// Documents in one `apply` mutation.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// `apply` mutations in flight at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: u32,
    /// Tasks the worker runs at once.
    #[arg(long, default_value_t = 512)]
    max_parallel: u32,
    /// Give up after this many seconds.
    #[arg(long, default_value_t = 1800)]
    timeout: u64,
    #[command(flatten)]
    common: CommonArgs,
}

/// Runs one scenario.
///
/// # Errors
/// When the server, the engine or the worker cannot be started, a statement fails, or the run does not finish in time.
pub async fn run(args: BenchArgs) -> anyhow::Result<()> {
    match args.scenario {
        Scenario::Floor(args) => floor::scenario(args).await,
        Scenario::Reconcile(args) => reconcile::scenario(args).await,
    }
}
