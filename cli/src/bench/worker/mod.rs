//! The worker that does nothing: what is left of a reconcile when the work itself costs nothing is the engine.

use converge_sdk::{Outcome, Provider, Request, TaskError, async_trait, serve};
use serde_json::json;

/// The hidden subcommand that runs it, so that the worker is a process of its own as in real life.
pub const NOOP_WORKER: &str = "__noop-worker";

/// The kind it serves.
pub const KIND: &str = "bench-leaf";

struct Noop;

#[async_trait]
impl Provider for Noop {
    fn kind(&self) -> &str {
        KIND
    }

    async fn work(&self, request: Request) -> Result<Outcome, TaskError> {
        // A status like a real one's: an id that the outside gave.
        Ok(Outcome::new().status(json!({ "id": format!("leaf-{}", request.id) })))
    }
}

/// Serves until SIGTERM; the broker and the number of tasks come from the environment, as with every worker.
///
/// # Errors
/// A malformed environment.
pub async fn noop_worker() -> anyhow::Result<()> {
    Ok(serve([Noop]).await?)
}
