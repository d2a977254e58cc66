//! What the API stands on.

use crate::directory::Directory;
use crate::http::Metrics;
use crate::limits::Limits;
use crate::subscription::Shared;
use converge_engine::gateway_api::Gateway;
use converge_event_store::Store;
use converge_projections::catch_up::resource_list::{Identities, Reader};
use converge_projections::catch_up::{Board, Feed};
use sqlx::PgPool;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Everything a request may reach. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    /// Decides: apply, delete, why.
    pub gateway: Arc<dyn Gateway>,
    /// Heads and streams.
    pub store: Arc<dyn Store>,
    /// The log to follow.
    pub feed: Arc<dyn Feed>,
    /// The resource list.
    pub list: Reader,
    /// How far the projections are.
    pub board: Board,
    pub limits: Limits,
    /// Rendered at `/metrics`; None: this process collects none.
    pub metrics: Option<Metrics>,
    /// Cancelled when the process goes down: WebSockets are closed, so that clients move on at once.
    pub shutdown: CancellationToken,
    pub(crate) directory: Arc<Directory>,
    /// What watches have in common.
    pub(crate) watched: Arc<Shared>,
}

impl ApiState {
    /// State with default limits and no metrics. `pool` serves the reads of the list (a replica will do), `store` the states
    /// of its rows.
    pub fn new(
        gateway: Arc<dyn Gateway>,
        store: Arc<dyn Store>,
        feed: Arc<dyn Feed>,
        pool: PgPool,
        board: Board,
    ) -> Self {
        let directory = Arc::new(Directory::new(Arc::clone(&store), Identities::new(pool.clone())));
        let watched = Arc::new(Shared::new(Arc::clone(&directory), Arc::clone(&store)));
        let list = Reader::new(pool, Arc::clone(&store));
        Self {
            gateway,
            store,
            feed,
            list,
            board,
            limits: Limits::default(),
            metrics: None,
            shutdown: CancellationToken::new(),
            directory,
            watched,
        }
    }
}
