//! What someone writes who teaches a worker a kind.

use crate::config::ConfigUpdate;
use crate::error::TaskError;
use crate::outcome::Outcome;
use crate::request::Request;
use async_trait::async_trait;
use tokio::sync::watch;

/// Whether a provider can take tasks now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Readiness {
    /// It can.
    #[default]
    Ready,
    /// It cannot, and why. Its kind's work waits; no resource fails for it, and other kinds on this worker go on.
    NotReady(String),
}

/// The handler for one kind.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// The kind it serves; for one that serves a provider name, the word that `WORKER_KINDS` selects it by.
    fn kind(&self) -> &str;

    /// The kind versions it serves; empty means all.
    fn versions(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Serve every kind whose manifest says `provider: NAME`, instead of the one kind.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Does one task. Must be idempotent: the same [`Request::idempotency_key`] comes again whenever an answer was lost.
    /// A panic fails this task as transient. When [`Request::cancelled`] fires nobody waits for the answer any more; the
    /// future is dropped a little later.
    async fn work(&self, request: Request) -> Result<Outcome, TaskError>;

    /// The kind's default config changed. Called before the first task that was decided under it.
    fn on_config(&self, update: &ConfigUpdate) {
        let _ = update;
    }

    /// Whether it can take tasks; asked on every connect and whenever [`Self::ready_changes`] fires.
    fn ready(&self) -> Readiness {
        Readiness::Ready
    }

    /// Fires when [`Self::ready`] would answer differently; None for a provider that is always ready.
    fn ready_changes(&self) -> Option<watch::Receiver<Readiness>> {
        None
    }
}
