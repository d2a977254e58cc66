//! Which part gets what: the one place that knows every crate of the server.

use super::{Listeners, Role, api};
use anyhow::Context;
use converge_broker::BrokerConfig;
use converge_engine::{Engine, EngineConfig, EngineParts};
use converge_event_store::postgres::{self, PgOptions, PgStore};
use converge_event_store::{Log, LogConfig, Store};
use converge_graphql::Metrics;
use converge_projections::catch_up::{Board, Feed, ResourceList, Runner};
use converge_projections::inline::StateProjector;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection, PgConnection};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connections for migrations and catch-up projections.
const PROJECTION_CONNECTIONS: u32 = 2;
/// How long a repeated command id is recognised, in milliseconds: a day.
const COMMAND_IDS_KEPT_MS: i64 = 24 * 60 * 60 * 1000;
const FORGET_EVERY: Duration = Duration::from_secs(60);
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
    let pool = pool(url, PROJECTION_CONNECTIONS).await?;
    postgres::migrate(&pool).await.context("cannot migrate the database")?;
    let store = PgStore::connect(url, PgOptions::default()).await.context("cannot open the event store")?;
    let pools = [pool.clone(), store.pool().clone()];
    let postgres_store = Arc::new(store);
    let store: Arc<dyn Store> = postgres_store.clone();
    let log = Log::start(store.clone(), Arc::new(StateProjector), LogConfig::default()).await?;
    let feed: Arc<dyn Feed> = Arc::new(log.tail());

    let broker_address = match &listeners.broker {
        Some(listener) => listener.local_addr()?.to_string(),
        None => String::new(),
    };
    let config =
        EngineConfig { role: role.to_string(), host: host(), broker_address, ..EngineConfig::default() };
    let engine = Engine::start(EngineParts { store: store.clone(), log: log.clone(), config }).await?;

    // Its child, so that one part's end can stop the others without passing for a shutdown that was asked for.
    let stop = shutdown.child_token();
    let mut serving = JoinSet::new();
    serving.spawn(forget(postgres_store, stop.clone()));
    if let Some(listener) = listeners.http {
        let board = Board::default();
        let list = Runner::new(Arc::new(ResourceList), pool, feed.clone(), &board);
        let stopping = stop.clone();
        serving.spawn(async move {
            list.run(stopping.clone()).await;
            // A projection that stops on an event it cannot apply says so at /readyz; the API goes on.
            stopping.cancelled().await;
            Ok(())
        });
        let gateway = engine.gateway();
        let (url, metrics, stop) = (url.to_owned(), metrics(), stop.clone());
        serving.spawn(api::serve(listener, api::Parts { url, gateway, feed, board, metrics, stop }));
    }
    if let Some(listener) = listeners.broker {
        let dispatch = engine.dispatch();
        let stopping = stop.clone();
        serving.spawn(async move {
            converge_broker::serve(dispatch, listener, stopping, BrokerConfig::default())
                .await
                .context("the broker failed")
        });
    }
    let mut parts = JoinSet::new();
    // The order of the end: requests are answered, workers' streams close and what they said is recorded, the
    // loops stop, the log drains. Each stands on the next.
    parts.spawn(async move {
        let first = tokio::select! {
            () = stop.cancelled() => Ok(()),
            Some(ended) = serving.join_next() => ended?,
        };
        stop.cancel();
        while let Some(ended) = serving.join_next().await {
            if let Err(error) = ended? {
                tracing::warn!(%error, "a part did not stop cleanly");
            }
        }
        engine.shutdown().await;
        log.shutdown().await;
        // Closed from this side: an embedded server that stops next would have to cut them off.
        for pool in pools {
            pool.close().await;
        }
        first
    });
    Ok(parts)
}

/// Forgets, little by little, command ids that no client repeats any more.
async fn forget(store: Arc<PgStore>, stop: CancellationToken) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(FORGET_EVERY) => {}
        }
        if let Err(error) = store.prune(COMMAND_IDS_KEPT_MS).await {
            tracing::warn!(%error, "old command ids stay a while longer");
        }
    }
}

/// Brings the schema up to date, under the migrations' own lock.
///
/// # Errors
/// When the database cannot be reached, or was migrated by a newer build.
pub async fn migrate(url: &str) -> anyhow::Result<()> {
    let pool = pool(url, 1).await?;
    postgres::migrate(&pool).await.context("cannot migrate the database")
}

/// A pool of at most `connections`; says at once why there is none.
pub(super) async fn pool(url: &str, connections: u32) -> anyhow::Result<PgPool> {
    // A pool would go on trying to connect until its patience ends; the first refusal says why at once.
    let probe = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect(url));
    let probe =
        probe.await.context("the database does not answer")?.context("cannot connect to the database")?;
    probe.close().await.context("cannot talk to the database")?;
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(CONNECT_TIMEOUT)
        .test_before_acquire(false)
        .connect(url)
        .await
        .context("cannot connect to the database")
}

/// The process's metrics; installed once, however many servers a process starts.
fn metrics() -> Option<Metrics> {
    static METRICS: OnceLock<Option<Metrics>> = OnceLock::new();
    METRICS
        .get_or_init(|| {
            Metrics::install()
                .inspect_err(|error| tracing::warn!(%error, "this process collects no metrics"))
                .ok()
        })
        .clone()
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_else(|_| "localhost".to_owned())
}
