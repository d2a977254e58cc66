//! Which part gets what: the one place that knows every crate of the server.

use super::{Listeners, Role};
use anyhow::Context;
use converge_event_store::postgres;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgConnection};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A database that does not answer within this is away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

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
    // A pool would go on trying to connect until its patience ends; the first refusal says why at once.
    let probe = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect(url));
    let probe =
        probe.await.context("the database does not answer")?.context("cannot connect to the database")?;
    probe.close().await.context("cannot talk to the database")?;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(CONNECT_TIMEOUT)
        .connect(url)
        .await
        .context("cannot connect to the database")?;
    let migrated = postgres::migrate(&pool).await.context("cannot migrate the schema");
    pool.close().await;
    migrated
}
