//! Describing a worker.

use super::{Core, Worker, WorkerError, jobs::Jobs};
use crate::config::Defaults;
use crate::provider::Provider;
use crate::settings::Settings;
use crate::tls::TlsFiles;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Made by [`Worker::builder`].
#[derive(Default)]
pub struct WorkerBuilder {
    settings: Settings,
    providers: Vec<Arc<dyn Provider>>,
    name: Option<String>,
}

impl WorkerBuilder {
    /// Hosts a provider.
    #[must_use]
    pub fn provider(mut self, provider: impl Provider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Hosts several.
    #[must_use]
    pub fn providers(mut self, providers: impl IntoIterator<Item = Arc<dyn Provider>>) -> Self {
        self.providers.extend(providers);
        self
    }

    /// All settings at once.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The one broker to dial.
    #[must_use]
    pub fn broker(mut self, address: impl Into<String>) -> Self {
        self.settings.brokers = vec![address.into()];
        self
    }

    /// Most tasks at once; at least 1.
    #[must_use]
    pub fn max_parallel(mut self, tasks: usize) -> Self {
        self.settings.max_parallel = tasks.max(1);
        self
    }

    /// How long a stopping worker may finish what it runs.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.settings.drain_timeout = timeout;
        self
    }

    /// TLS towards the broker.
    #[must_use]
    pub fn tls(mut self, files: TlsFiles) -> Self {
        self.settings.tls = Some(files);
        self
    }

    /// A name for people; the default is the process id. The broker identifies the worker by its connection instead.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The worker.
    ///
    /// # Errors
    /// When nothing is left to serve, or `WORKER_KINDS` asks for what is not hosted.
    pub fn build(self) -> Result<Worker, WorkerError> {
        let Self { settings, mut providers, name } = self;
        if let Some(wanted) = &settings.kinds {
            if let Some(name) =
                wanted.iter().find(|name| !providers.iter().any(|provider| provider.kind() == *name))
            {
                let hosted = providers.iter().map(|provider| provider.kind()).collect::<Vec<_>>().join(", ");
                return Err(WorkerError::UnknownKind { name: name.clone(), hosted });
            }
            providers.retain(|provider| wanted.iter().any(|name| name == provider.kind()));
        }
        if providers.is_empty() {
            return Err(WorkerError::NoProvider);
        }
        let name = name.unwrap_or_else(|| format!("pid {}", std::process::id()));
        let core = Core {
            providers,
            settings,
            name,
            jobs: Jobs::default(),
            defaults: Defaults::default(),
            connected: AtomicBool::new(false),
        };
        Ok(Worker { core: Arc::new(core) })
    }
}
