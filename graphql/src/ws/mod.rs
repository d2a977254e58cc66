//! GraphQL over WebSocket: the protocol `graphql-transport-ws`.

mod close;
mod messages;
mod session;

use crate::http::{App, context};
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use session::Session;
use std::sync::Arc;

/// The one subprotocol spoken.
pub const SUBPROTOCOL: &str = "graphql-transport-ws";

/// Upgrades to a WebSocket, if there is room for one more.
pub async fn upgrade(State(app): State<App>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    let Ok(permit) = Arc::clone(&app.connections).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many connections; try again\n").into_response();
    };
    let context = context(&headers);
    upgrade.protocols([SUBPROTOCOL]).max_message_size(crate::limits::REQUEST_BYTES_MAX).on_upgrade(
        move |socket| async move {
            Session::new(app, context, socket).run().await;
            drop(permit);
        },
    )
}
