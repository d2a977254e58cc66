//! Which part gets what: the one place that knows every crate of the server.

use super::{Listeners, Role};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Migrates the schema and starts the parts of `role`, each a task that ends when `shutdown` is cancelled.
///
/// # Errors
/// When the database cannot be reached or migrated, or a part does not start.
pub async fn start(
    url: &str,
    role: Role,
    listeners: Listeners,
    shutdown: CancellationToken,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let _ = (url, role, listeners.http, listeners.broker, shutdown);
    anyhow::bail!("this build has no engine")
}

/// Brings the schema up to date, under the migrations' own lock.
///
/// # Errors
/// When the database cannot be reached, or was migrated by a newer build.
pub async fn migrate(url: &str) -> anyhow::Result<()> {
    let _ = url;
    anyhow::bail!("this build has no migrations")
}
