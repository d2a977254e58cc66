//! `converge worker`: the built-in worker, which runs programs over stdio.

use crate::exit::Outcome;
use clap::Args;

/// Runs the built-in worker.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// The broker to serve
    #[arg(long, env = "CONVERGE_BROKER", value_name = "URL", default_value = "http://127.0.0.1:9090")]
    broker: String,
    /// Tasks at once
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
}

/// Runs it until a signal.
///
/// # Errors
/// When it cannot start.
pub async fn run(args: WorkerArgs) -> Outcome {
    let _ = (args.broker, args.parallel);
    Err(anyhow::anyhow!("this build has no built-in worker").into())
}
