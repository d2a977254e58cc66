//! One connection, from upgrade to close.
//!
//! ```text
//!  opened ──connection_init──▶ acknowledged ──subscribe──▶ operations run ──▶ closed
//!     └──────── timeout, a second init, an unknown message, a taken id ────────▲
//! ```
//!
//! Everything happens in one task: it reads the socket, polls the operations' streams and writes. While a
//! write waits for a slow peer nothing is polled, so a slow reader costs one result of memory per operation
//! and no other reader anything; a write that waits too long ends the connection.

use super::close::Close;
use super::messages::{ClientMessage, ServerMessage};
use crate::error::ApiError;
use crate::http::{App, is_request_error};
use crate::request::{Envelope, Refusal};
use async_graphql::Response;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use converge_engine::gateway_api::RequestContext;
use futures::StreamExt;
use futures::stream::{self, AbortHandle, Abortable, BoxStream, SelectAll};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// Pings a peer may leave without any sign of life.
const SILENT_PINGS_MAX: u32 = 3;

/// Results of one operation by its id, then its end.
type Operation = BoxStream<'static, (Arc<str>, Option<Response>)>;

pub struct Session {
    app: App,
    context: RequestContext,
    socket: WebSocket,
    /// All that run. It polls only those that were woken: fifty quiet watches cost a busy one nothing.
    results: SelectAll<Abortable<Operation>>,
    /// How to end each of them. An operation is in here until its end was said by one of the sides.
    operations: HashMap<Arc<str>, AbortHandle>,
    acknowledged: bool,
}

/// What the connection hears next.
enum Heard {
    Message(Option<Result<Message, axum::Error>>),
    Result(Arc<str>, Option<Response>),
    InitTimeout,
    PingDue,
    Shutdown,
}

impl Session {
    pub fn new(app: App, context: RequestContext, socket: WebSocket) -> Self {
        Self {
            app,
            context,
            socket,
            results: SelectAll::new(),
            operations: HashMap::new(),
            acknowledged: false,
        }
    }

    /// Serves until one side ends it.
    pub async fn run(mut self) {
        let Err(close) = self.serve().await;
        if let Some(frame) = close.frame() {
            let goodbye = self.socket.send(Message::Close(Some(frame)));
            // A peer that does not even take the close is left to the operating system.
            let _ = tokio::time::timeout(self.app.state.limits.ws_send_timeout, goodbye).await;
        }
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, Close> {
        if self.socket.protocol().is_none() {
            return Err(Close::SubprotocolNotAcceptable);
        }
        let limits = self.app.state.limits.clone();
        let shutdown = self.app.state.shutdown.clone();
        let init_deadline = Instant::now() + limits.ws_init_timeout;
        let mut pings = interval_at(Instant::now() + limits.ws_ping_every, limits.ws_ping_every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent = 0;
        loop {
            // Each branch only waits; what it heard is handled after the select, so that nothing half done
            // is ever dropped by another branch winning.
            let heard = tokio::select! {
                () = shutdown.cancelled() => Heard::Shutdown,
                message = self.socket.recv() => Heard::Message(message),
                Some((id, result)) = self.results.next() => Heard::Result(id, result),
                () = sleep_until(init_deadline), if !self.acknowledged => Heard::InitTimeout,
                _ = pings.tick() => Heard::PingDue,
            };
            match heard {
                Heard::Shutdown => return Err(Close::GoingAway),
                Heard::InitTimeout => return Err(Close::InitialisationTimeout),
                Heard::PingDue if silent >= SILENT_PINGS_MAX => return Err(Close::Gone),
                Heard::PingDue => {
                    silent += 1;
                    self.write(Message::Ping(Default::default())).await?;
                }
                Heard::Message(message) => {
                    silent = 0;
                    self.hear(message).await?;
                }
                Heard::Result(id, Some(response)) => self.tell(&id, &response).await?,
                Heard::Result(id, None) => {
                    self.end(&id);
                    self.say(&ServerMessage::Complete { id: &id }).await?;
                }
            }
        }
    }

    async fn hear(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), Close> {
        let text = match message {
            None | Some(Err(_) | Ok(Message::Close(_))) => return Err(Close::Gone),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Binary(_))) => return Err(Close::Invalid("Invalid message: binary".to_owned())),
            Some(Ok(Message::Text(text))) => text,
        };
        match ClientMessage::parse(&text).map_err(Close::Invalid)? {
            ClientMessage::ConnectionInit if self.acknowledged => Err(Close::TooManyInitialisationRequests),
            ClientMessage::ConnectionInit => {
                self.acknowledged = true;
                self.say(&ServerMessage::ConnectionAck).await
            }
            ClientMessage::Ping => self.say(&ServerMessage::Pong).await,
            ClientMessage::Pong => Ok(()),
            ClientMessage::Subscribe { .. } if !self.acknowledged => Err(Close::Unauthorized),
            ClientMessage::Subscribe { id, .. } if self.operations.contains_key(id.as_str()) => {
                Err(Close::SubscriberExists(id))
            }
            ClientMessage::Subscribe { id, payload } => self.subscribe(id, payload).await,
            ClientMessage::Complete { id } => {
                // Unknown ids are fine: both sides may complete at the same moment.
                self.end(&id);
                Ok(())
            }
        }
    }

    async fn subscribe(&mut self, id: String, payload: &RawValue) -> Result<(), Close> {
        if self.operations.len() >= self.app.state.limits.ws_operations_max {
            let error = ApiError::unavailable("too many operations on this connection");
            return self.refuse(&id, error).await;
        }
        let request = match Envelope::parse(payload.get()).and_then(Envelope::into_request) {
            Ok(request) => request.data(self.context.clone()),
            Err(Refusal::Malformed(why)) => return Err(Close::Invalid(format!("Invalid message: {why}"))),
            Err(Refusal::Unfaithful(error)) => return self.refuse(&id, error).await,
        };
        let id = Arc::<str>::from(id);
        let (of, ended) = (Arc::clone(&id), (Arc::clone(&id), None));
        let results = self.app.schema.execute_stream(request);
        let results = results.map(move |response| (Arc::clone(&of), Some(response)));
        let operation: Operation = results.chain(stream::once(std::future::ready(ended))).boxed();
        let (operation, end) = stream::abortable(operation);
        self.results.push(operation);
        self.operations.insert(id, end);
        Ok(())
    }

    /// Forgets an operation. Its stream is never polled again, so no result of it can follow, not even when its id is
    /// taken anew at once.
    fn end(&mut self, id: &str) {
        if let Some(end) = self.operations.remove(id) {
            end.abort();
        }
    }

    /// A result, or, when nothing could be executed, the error that ends the operation.
    async fn tell(&mut self, id: &str, response: &Response) -> Result<(), Close> {
        if is_request_error(response) {
            self.end(id);
            return self.say(&ServerMessage::Error { id, payload: &response.errors }).await;
        }
        self.say(&ServerMessage::next(id, response)).await
    }

    async fn refuse(&mut self, id: &str, error: ApiError) -> Result<(), Close> {
        self.say(&ServerMessage::Error { id, payload: &[error.into_server_error()] }).await
    }

    async fn say(&mut self, message: &ServerMessage<'_>) -> Result<(), Close> {
        let text = serde_json::to_string(message).map_err(|error| {
            tracing::error!(%error, "a message cannot be written as JSON");
            Close::Gone
        })?;
        self.write(Message::Text(Utf8Bytes::from(text))).await
    }

    async fn write(&mut self, message: Message) -> Result<(), Close> {
        let sent = self.socket.send(message);
        match tokio::time::timeout(self.app.state.limits.ws_send_timeout, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Close::Gone),
            Err(_) => {
                tracing::info!(
                    "a subscriber took nothing for too long; it may resume from its last position"
                );
                Err(Close::Gone)
            }
        }
    }
}
