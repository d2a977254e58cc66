//! The listener's routes.

mod answer;
mod graphql;
mod health;
mod landing;
mod metrics;
mod negotiate;

pub use answer::{Wire, is_request_error};
pub use metrics::Metrics;

use crate::schema::{self, ApiSchema};
use crate::state::ApiState;
use crate::ws;
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{any, get};
use axum::serve::ListenerExt;
use converge_engine::gateway_api::RequestContext;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// What every handler reaches.
#[derive(Clone)]
pub struct App {
    pub state: ApiState,
    pub schema: ApiSchema,
    pub requests: Arc<Semaphore>,
    pub connections: Arc<Semaphore>,
}

/// `/graphql`, `/graphql/ws`, `/livez`, `/readyz`, `/metrics` and a word of welcome at `/`.
pub fn router(state: ApiState) -> Router {
    let app = App {
        schema: schema::build(state.clone()),
        requests: Arc::new(Semaphore::new(state.limits.http_requests_max)),
        connections: Arc::new(Semaphore::new(state.limits.ws_connections_max)),
        state,
    };
    Router::new()
        .route("/", get(landing::landing))
        .route("/graphql", any(graphql::graphql))
        .route("/graphql/ws", any(ws::upgrade))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .with_state(app)
}

/// Serves the API on `listener` until the state's `shutdown` is cancelled and the last request is answered.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, state: ApiState) -> std::io::Result<()> {
    let shutdown = state.shutdown.clone();
    // Messages of a WebSocket are small and many: held back to fill a segment, each would wait for the
    // peer's delayed acknowledgement of the one before, some 40 ms.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection stays with Nagle's algorithm");
        }
    });
    axum::serve(listener, router(state)).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

/// Who asks: by the headers `x-converge-actor` and `x-request-id`. Whoever reaches the listener may claim
/// any name; the default listener is the loopback address.
pub fn context(headers: &HeaderMap) -> RequestContext {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    RequestContext {
        actor: header("x-converge-actor").unwrap_or_else(|| "anonymous".to_owned()),
        request_id: header("x-request-id").unwrap_or_else(|| uuid::Uuid::now_v7().to_string()),
        command_id: None,
    }
}
