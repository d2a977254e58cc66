//! The worker that does nothing: what is left of a reconcile when the work itself costs nothing is the engine.
//!
//! It serves every kind of every scenario, and can write each of its effects to a ledger, from which the bench counts
//! afterwards what was lost or done twice.

mod composer;
mod kinds;
mod leaf;
mod ledger;

use std::sync::Arc;

use converge_sdk::Provider;

use self::composer::Composer;
pub use self::composer::{edits_of, shape_of};
pub use self::kinds::{CHILD_KINDS, LEAF, PROBE, ROOT, child_kinds, leaf_kind, probe_kind, root_kind};
use self::leaf::Leaf;
use self::ledger::Ledger;
pub use self::ledger::{Effects, LEDGER_ENV};

/// The hidden subcommand that runs it, so that the worker is a process of its own as in real life.
pub const NOOP_WORKER: &str = "__noop-worker";

/// Serves until SIGTERM; the broker and the number of tasks come from the environment, as with every worker.
///
/// # Errors
/// A malformed environment, or a ledger that cannot be opened.
pub async fn noop_worker() -> anyhow::Result<()> {
    let ledger = Arc::new(Ledger::from_env()?);
    let leaves = CHILD_KINDS.into_iter().chain([LEAF, PROBE]);
    let mut providers: Vec<Arc<dyn Provider>> =
        leaves.map(|kind| Arc::new(Leaf::new(kind, &ledger)) as Arc<dyn Provider>).collect();
    providers.push(Arc::new(Composer::new(&ledger)));
    let shutdown = tokio_util::sync::CancellationToken::new();
    let stop = crate::server::signal()?;
    let asked = shutdown.clone();
    tokio::spawn(async move {
        stop.await;
        asked.cancel();
    });
    Ok(converge_sdk::serve_until(providers, shutdown).await?)
}
