//! The machinery around providers.
//!
//! `jobs` remembers every task until the broker has its outcome; it outlives connections. `session` is one
//! connection: it feeds tasks to `execute` and empties the outbox of `jobs`. `drain` decides when it all may end.

mod builder;
mod deliver;
mod dial;
mod drain;
mod execute;
mod jobs;
mod session;

pub use builder::WorkerBuilder;
pub(crate) use jobs::PageTaken;

use crate::backoff::Backoff;
use crate::config::Defaults;
use crate::provider::{Provider, Readiness};
use crate::settings::{Settings, SettingsError};
use converge_protocol::v1;
use jobs::Jobs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// Why a worker cannot run.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A setting makes no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// There is nothing to serve.
    #[error("the worker hosts no provider")]
    NoProvider,
    /// `WORKER_KINDS` names a kind that this worker does not host.
    #[error("WORKER_KINDS names `{name}`, which this worker does not host; it hosts {hosted}")]
    UnknownKind {
        /// What was asked for.
        name: String,
        /// What there is.
        hosted: String,
    },
    /// Signal handlers could not be installed.
    #[error("signal handlers could not be installed: {0}")]
    Signals(std::io::Error),
    /// The health endpoint could not be opened.
    #[error("HEALTH_ADDR: {0}")]
    Health(std::io::Error),
}

/// What connections and handlers share.
pub(crate) struct Core {
    providers: Vec<Arc<dyn Provider>>,
    settings: Settings,
    name: String,
    jobs: Jobs,
    defaults: Defaults,
    connected: AtomicBool,
}

impl Core {
    /// The provider for a task of `kind` whose manifest names `provider`.
    fn provider_for(&self, kind: &str, kind_version: u32, provider: &str) -> Option<Arc<dyn Provider>> {
        let fits = |hosted: &&Arc<dyn Provider>| match hosted.provider() {
            Some(name) => name == provider,
            None => {
                let versions = hosted.versions();
                hosted.kind() == kind && (versions.is_empty() || versions.contains(&kind_version))
            }
        };
        self.providers.iter().find(fits).cloned()
    }

    fn serves(&self) -> Vec<v1::Served> {
        let served = |provider: &Arc<dyn Provider>| {
            let (ready, reason) = match provider.ready() {
                Readiness::Ready => (true, String::new()),
                Readiness::NotReady(reason) => (false, reason),
            };
            let by_name = provider.provider();
            v1::Served {
                kind: if by_name.is_some() { String::new() } else { provider.kind().to_owned() },
                versions: provider.versions(),
                provider: by_name.unwrap_or_default().to_owned(),
                ready,
                reason,
            }
        };
        self.providers.iter().map(served).collect()
    }
}

/// A worker that is ready to run.
pub struct Worker {
    core: Arc<Core>,
}

impl Worker {
    /// Starts describing one.
    pub fn builder() -> WorkerBuilder {
        WorkerBuilder::default()
    }

    /// Dials, serves and reconnects until `shutdown`; then drains and returns. Results that no broker could be given
    /// within the drain budget are dropped: their tasks come again under the same idempotency keys.
    ///
    /// # Errors
    /// When the health endpoint cannot be opened. A broker that is away is no error.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), WorkerError> {
        let core = self.core;
        let finished = CancellationToken::new();
        let health = core.settings.health.map(|address| {
            let core = Arc::clone(&core);
            tokio::spawn(crate::health::serve(address, move || core.connected.load(Ordering::Relaxed)))
        });
        let drain = tokio::spawn(drain::run(Arc::clone(&core), shutdown, finished.clone()));
        let stay_connected = stay_connected(&core, &finished);
        let ended = match health {
            None => {
                stay_connected.await;
                Ok(())
            }
            Some(mut health) => tokio::select! {
                () = stay_connected => { health.abort(); Ok(()) }
                failed = &mut health => match failed {
                    Ok(Err(error)) => Err(WorkerError::Health(error)),
                    Ok(Ok(())) | Err(_) => Err(WorkerError::Health(std::io::Error::other("it ended"))),
                },
            },
        };
        drain.abort();
        ended
    }
}

async fn stay_connected(core: &Arc<Core>, finished: &CancellationToken) {
    let mut backoff = Backoff::default();
    let mut turn = 0_usize;
    while !finished.is_cancelled() {
        let broker = core.settings.brokers.get(turn % core.settings.brokers.len().max(1));
        let Some(broker) = broker else { return };
        let ended = session::run(core, broker, finished).await;
        if core.connected.swap(false, Ordering::Relaxed) {
            backoff.reset();
        }
        match ended {
            Ok(()) => tracing::info!(broker, "disconnected"),
            Err(error) => {
                tracing::warn!(broker, %error, running = core.jobs.count().running, "no connection to the broker");
            }
        }
        turn += 1;
        tokio::select! {
            () = finished.cancelled() => {}
            () = tokio::time::sleep(backoff.pause()) => {}
        }
    }
}
