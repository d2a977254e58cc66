//! The arguments of `converge bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `converge bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub(super) scenario: Scenario,
}

#[derive(Debug, Subcommand)]
pub(super) enum Scenario {
    /// The limit here: batched SQL that writes what the engine would write, with no engine around it.
    Floor(FloorArgs),
    /// Leaf resources applied through GraphQL and worked by a separate process, until the last is Ready.
    Reconcile(ReconcileArgs),
    /// One root with N children of four kinds, with edges and value flows, until the root is Ready.
    Fanout(TreeArgs),
    /// N children below as many roots as they need, each as in `fanout`, until all roots are Ready.
    Forest(ForestArgs),
    /// On a settled forest: edit 1 % of the specs, the same with the worker killed half way, delete all.
    Churn(ForestArgs),
    /// One resource at a time on an idle engine: applied, in the worker, Ready in a subscriber's hands.
    Latency(LatencyArgs),
    /// N Ready resources and nothing to do: what the engine costs then.
    Idle(IdleArgs),
    /// Subscribers with filters while `forest` runs: how late they hear, and what they cost.
    Watch(WatchArgs),
}

/// What every scenario takes.
#[derive(Debug, Clone, Args)]
pub(super) struct CommonArgs {
    /// Print one JSON document instead of lines for people.
    #[arg(long)]
    pub json: bool,
    /// Use this server instead of an embedded one. A database `converge_bench_…` is made there and dropped.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Below this directory the embedded server's data lives for the run. Name one on the disk to be measured.
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Count the statements inside functions too; costs the server a little more. For the embedded server.
    #[arg(long)]
    pub nested_statements: bool,
}

/// What every scenario takes that runs the engine.
#[derive(Debug, Clone, Args)]
pub(super) struct EngineArgs {
    /// Tasks the worker runs at once.
    #[arg(long, default_value_t = 512)]
    pub max_parallel: u32,
    /// Give up when a step has taken this many seconds.
    #[arg(long, default_value_t = 3600)]
    pub timeout: u64,
    /// Whatever is drawn at random is drawn from this.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What is asked while a large scenario runs.
#[derive(Debug, Clone, Args)]
pub(super) struct ProbeArgs {
    /// Ask nothing and follow nothing while the clock runs.
    #[arg(long)]
    pub no_probe: bool,
    /// Questions per second while the clock runs, by turns one resource and one page of resources.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub probe_rate: u32,
    /// Follow every event, not only those of some hundred names.
    #[arg(long)]
    pub follow_all: bool,
}

/// How documents are applied.
#[derive(Debug, Clone, Args)]
pub(super) struct LoadArgs {
    /// Documents in one `apply` mutation.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub batch: u32,
    /// `apply` mutations in flight at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub clients: u32,
}

#[derive(Debug, Clone, Args)]
pub(super) struct FloorArgs {
    /// Resources: each is one insert and two updates of a head row, and three events.
    #[arg(long, default_value_t = 50_000)]
    pub n: u32,
    /// Resources in one transaction.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub batch: u32,
    /// Connections that write at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub connections: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ReconcileArgs {
    /// Leaf resources.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub probe: ProbeArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Clone, Args)]
pub(super) struct TreeArgs {
    /// Children.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    /// Leave the root's rollup out: it is Ready as soon as its children are.
    #[arg(long)]
    pub no_rollup: bool,
    #[command(flatten)]
    pub probe: ProbeArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ForestArgs {
    /// Children of one root.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub children: u32,
    #[command(flatten)]
    pub tree: TreeArgs,
}

#[derive(Debug, Clone, Args)]
pub(super) struct LatencyArgs {
    /// Resources, one after the other.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Clone, Args)]
pub(super) struct IdleArgs {
    /// Ready resources.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    /// How long nothing is done.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Clone, Args)]
pub(super) struct WatchArgs {
    /// Subscriptions.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub subscribers: u32,
    /// Subscriptions that share one WebSocket connection.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub on_one_connection: u32,
    #[command(flatten)]
    pub forest: ForestArgs,
}
