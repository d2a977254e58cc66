//! The whole life of a worker process in one call.

use crate::provider::Provider;
use crate::settings::Settings;
use crate::worker::{Worker, WorkerError};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Reads the environment, serves `providers`, and returns after a drain on SIGTERM or SIGINT.
///
/// # Errors
/// A malformed setting, or one that no provider can satisfy. A broker that is away is no error: it is dialled again.
pub async fn serve<P: Provider>(providers: impl IntoIterator<Item = P>) -> Result<(), WorkerError> {
    let providers = providers.into_iter().map(|provider| Arc::new(provider) as Arc<dyn Provider>).collect();
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let mut terminate = signal(SignalKind::terminate()).map_err(WorkerError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(WorkerError::Signals)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: no new tasks, finishing what runs");
        stop.cancel();
    });
    serve_until(providers, shutdown).await
}

/// As [`serve`], for a process that decides itself when to stop.
///
/// # Errors
/// As [`serve`].
pub async fn serve_until(
    providers: Vec<Arc<dyn Provider>>,
    shutdown: CancellationToken,
) -> Result<(), WorkerError> {
    crate::logging::init_logging()?;
    let settings = Settings::from_env()?;
    Worker::builder().settings(settings).providers(providers).build()?.run(shutdown).await
}
