//! The gRPC server around the sessions.

use crate::config::BrokerConfig;
use crate::session::{self, DownStream};
use crate::shared::Shared;
use crate::{claims, leases, watch};
use converge_engine::dispatch::Dispatch;
use converge_protocol::v1::Up;
use converge_protocol::v1::broker_server::{Broker, BrokerServer};
use futures::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// Largest message from a worker, in bytes. Compositions come in frames of 1 MiB; a status comes whole.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A peer that is silent on HTTP/2 for this long is asked whether it is there, and given as long to answer.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Why the server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener or the HTTP/2 server failed.
    #[error("the broker's server failed: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// Serves workers on `listener` until `shutdown`, then closes every stream with a status that tells workers to reconnect, and
/// returns when the outcomes it was recording are in the store or [`BrokerConfig::shutdown_grace`] is over.
///
/// # Errors
/// When the server itself fails; a worker's or the engine's errors never end it.
pub async fn serve(
    dispatch: Arc<dyn Dispatch>,
    listener: TcpListener,
    shutdown: CancellationToken,
    config: BrokerConfig,
) -> Result<(), ServeError> {
    let grace = config.shutdown_grace;
    let stopping = shutdown.clone();
    // A child, so that this broker's loops also end when its server fails.
    let shared = Shared::new(dispatch, config, shutdown.child_token());
    let mut loops = JoinSet::new();
    loops.spawn(claims::run(Arc::clone(&shared)));
    loops.spawn(leases::run(Arc::clone(&shared)));
    loops.spawn(watch::wakeups(Arc::clone(&shared)));
    loops.spawn(watch::cancellations(Arc::clone(&shared)));
    loops.spawn(watch::config_changes(Arc::clone(&shared)));

    let service = BrokerServer::new(Service { shared: Arc::clone(&shared) })
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .add_service(service)
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            stopping.clone().cancelled_owned(),
        );
    // A connection that will not close must not hold the process.
    let overdue = async {
        stopping.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    let served = tokio::select! {
        served = server => served,
        () = overdue => Ok(()),
    };
    shared.shutdown.cancel();
    while loops.join_next().await.is_some() {}
    shared.obligations.close();
    if tokio::time::timeout(grace, shared.obligations.wait()).await.is_err() {
        tracing::warn!("the broker stops with outcomes unrecorded; their workers will deliver them again");
    }
    served.map_err(ServeError::from)
}

struct Service {
    shared: Arc<Shared>,
}

#[tonic::async_trait]
impl Broker for Service {
    type WorkStream = DownStream;

    async fn work(&self, request: Request<Streaming<Up>>) -> Result<Response<Self::WorkStream>, Status> {
        // Observed, never told.
        let identity = request.remote_addr().map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
        let up = request.into_inner().boxed();
        Ok(Response::new(session::open(&self.shared, identity, up)))
    }
}
