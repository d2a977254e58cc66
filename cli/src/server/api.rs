//! The API, on threads and connections of its own.
//!
//! A busy engine decides, encodes and decodes batches for milliseconds at a time. A request has a few short steps, and
//! each would wait behind such work: for a thread, and for a connection. With its own few threads it waits for the
//! operating system at most, which is quick to run who rests most of the time.

use anyhow::Context;
use converge_engine::gateway_api::Gateway;
use converge_event_store::postgres::{PgOptions, PgStore};
use converge_graphql::{ApiState, Metrics};
use converge_projections::catch_up::{Board, Feed};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

const THREADS: usize = 2;
/// Connections for lists, and as many for states. Two pools: a page holds one of the first while it waits for one of the
/// second, so that no number of pages can wait for each other.
const CONNECTIONS: u32 = 8;

/// What the API stands on.
pub(super) struct Parts {
    pub url: String,
    pub gateway: Arc<dyn Gateway>,
    pub feed: Arc<dyn Feed>,
    pub board: Board,
    pub metrics: Option<Metrics>,
    pub stop: CancellationToken,
}

/// Serves until `parts.stop` is cancelled.
///
/// # Errors
/// When the database cannot be reached, or the listener fails.
pub(super) async fn serve(listener: TcpListener, parts: Parts) -> anyhow::Result<()> {
    // Registered with the threads that will accept from it.
    let listener = listener.into_std().context("cannot hand over the API's listener")?;
    let threads = Threads::start()?;
    threads.spawn(run(listener, parts)).await.context("the API ended early")?
}

async fn run(listener: std::net::TcpListener, parts: Parts) -> anyhow::Result<()> {
    let Parts { url, gateway, feed, board, metrics, stop } = parts;
    let listener = TcpListener::from_std(listener).context("cannot take over the API's listener")?;
    let options = PgOptions { readers_max: CONNECTIONS, ..PgOptions::default() };
    let states = PgStore::connect(&url, options).await.context("the API cannot open the event store")?;
    let lists = super::wiring::pool(&url, CONNECTIONS).await?;
    let pools = [states.pool().clone(), lists.clone()];
    let mut state = ApiState::new(gateway, Arc::new(states), feed, lists, board);
    state.metrics = metrics;
    state.shutdown = stop;
    let served = converge_graphql::serve(listener, state).await.context("the API failed");
    // Closed from this side: an embedded server that stops next would have to cut them off.
    for pool in pools {
        pool.close().await;
    }
    served
}

/// A runtime that may end inside another one: dropping one waits for its threads, which a task must not do.
struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("converge-api")
            .enable_all()
            .build()
            .context("cannot start the API's threads")?;
        Ok(Self(Some(runtime)))
    }

    async fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let runtime = self.0.as_ref().context("the API's threads have ended")?;
        Ok(runtime.spawn(task).await?)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
