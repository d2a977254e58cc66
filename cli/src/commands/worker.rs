//! `converge worker`: the built-in worker, which runs programs over stdio and scripts in a shell.

use crate::exit::Outcome;
use crate::server;
use clap::Args;
use converge_sdk::{Settings, Worker};
use tokio_util::sync::CancellationToken;

/// Runs the built-in worker
///
/// Settings come from the environment (`BROKER_ADDR`, `WORKER_MAX_PARALLEL`, `STDIO_KINDS`, …); a flag wins over
/// its variable.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// The broker to serve (BROKER_ADDR)
    #[arg(long, value_name = "ADDRESS")]
    broker: Option<String>,
    /// Tasks at once (WORKER_MAX_PARALLEL)
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
}

/// Runs it until a signal, then drains.
///
/// # Errors
/// When a setting is malformed.
pub async fn run(args: WorkerArgs) -> Outcome {
    let mut settings = Settings::from_env().map_err(anyhow::Error::from)?;
    if let Some(broker) = args.broker {
        settings.brokers = vec![broker];
    }
    if let Some(parallel) = args.parallel {
        settings.max_parallel = parallel;
    }
    let shutdown = CancellationToken::new();
    let stop = server::signal().map_err(anyhow::Error::from)?;
    let asked = shutdown.clone();
    tokio::spawn(async move {
        stop.await;
        asked.cancel();
    });
    let worker = Worker::builder()
        .settings(settings)
        .providers(converge_builtin::providers(|name| std::env::var(name).ok()))
        .build()
        .map_err(anyhow::Error::from)?;
    worker.run(shutdown).await.map_err(anyhow::Error::from)?;
    Ok(())
}
