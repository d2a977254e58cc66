//! Following the log over `graphql-transport-ws`, across reconnects, with no gap and no duplicate.
//!
//! The argument: a follower always starts *from* a position it has read, and the server sends what comes
//! after, in order. After a break it starts again from the last position it handed out, and drops
//! anything at or before it. So a position is handed out exactly once whatever the moment of the break,
//! and whether or not a server counts `from` itself in.

use super::error::{ClientError, GraphqlError};
use super::http::{Answer, Client};
use super::operations::Operation;
use futures::{SinkExt, StreamExt};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::marker::PhantomData;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// A silent peer is asked for a sign of life after this, and given up after as long again.
const SILENCE: Duration = Duration::from_secs(15);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
const SUBSCRIPTION_ID: &str = "1";

/// Something that happened at a position of the log.
pub trait Positioned: DeserializeOwned {
    /// Where in the log it happened.
    fn position(&self) -> u64;
}

/// What following yields.
#[derive(Debug)]
pub enum Followed<T> {
    Item(T),
    /// The connection broke; it is being made again from this position. For the user's eyes only.
    Interrupted {
        from: u64,
        reason: String,
    },
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A subscription that outlives its connections.
pub struct Follow<T> {
    client: Client,
    operation: Operation,
    variables: Map<String, Value>,
    from: u64,
    link: Option<Link>,
    backoff: Duration,
    retry_at: Option<Instant>,
    /// The present interruption has been handed out.
    told: bool,
    item: PhantomData<fn() -> T>,
}

struct Link {
    socket: Socket,
    heard_at: Instant,
    asked: bool,
}

/// Why a connection is of no more use.
enum Broken {
    /// It can be made again.
    Link(String),
    /// The server will never serve this subscription.
    Refused(ClientError),
}

impl Client {
    /// Follows what happens after position `from`. Connects at the first [`Follow::next`].
    pub fn follow<T: Positioned>(
        &self,
        operation: Operation,
        variables: Map<String, Value>,
        from: u64,
    ) -> Follow<T> {
        Follow {
            client: self.clone(),
            operation,
            variables,
            from,
            link: None,
            backoff: BACKOFF_MIN,
            retry_at: None,
            told: false,
            item: PhantomData,
        }
    }
}

impl<T: Positioned> Follow<T> {
    /// The next thing that happens. Waits for ever if nothing does; may be dropped and called again at
    /// any await without losing anything, because state changes only between awaits.
    ///
    /// # Errors
    /// Only when the server refuses the subscription itself; breaks are reported and mended.
    pub async fn next(&mut self) -> Result<Followed<T>, ClientError> {
        loop {
            if let Some(at) = self.retry_at {
                tokio::time::sleep_until(at).await;
                self.retry_at = None;
            }
            let broken = match self.step().await {
                Ok(Some(item)) if item.position() > self.from => {
                    self.from = item.position();
                    self.backoff = BACKOFF_MIN;
                    self.told = false;
                    return Ok(Followed::Item(item));
                }
                Ok(_) => continue,
                Err(broken) => broken,
            };
            self.link = None;
            self.retry_at = Some(Instant::now() + self.backoff);
            self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
            match broken {
                // Told once; that it is still away is no news.
                Broken::Link(reason) if self.told => {
                    tracing::debug!(from = self.from, reason, "still interrupted");
                }
                Broken::Link(reason) => {
                    self.told = true;
                    return Ok(Followed::Interrupted { from: self.from, reason });
                }
                Broken::Refused(error) => return Err(error),
            }
        }
    }

    /// One message, connecting first if need be; None for a message that is not an item.
    async fn step(&mut self) -> Result<Option<T>, Broken> {
        let operation = self.operation.name;
        let link = match &mut self.link {
            Some(link) => link,
            None => {
                // Boxed: a handshake is large and rare, its follower is held by every wait.
                let connecting = Box::pin(connect(&self.client, self.operation, &self.variables, self.from));
                let socket = tokio::time::timeout(HANDSHAKE_TIMEOUT, connecting)
                    .await
                    .map_err(|_| Broken::Link("the handshake took too long".to_owned()))??;
                self.link.insert(Link { socket, heard_at: Instant::now(), asked: false })
            }
        };
        let patience = if link.asked { 2 * SILENCE } else { SILENCE };
        let Ok(received) = tokio::time::timeout_at(link.heard_at + patience, link.socket.next()).await else {
            if link.asked {
                return Err(Broken::Link("the server fell silent".to_owned()));
            }
            link.asked = true;
            send(&mut link.socket, &json!({"type": "ping"})).await?;
            return Ok(None);
        };
        link.heard_at = Instant::now();
        link.asked = false;
        let message = match received {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(frame))) => {
                return Err(closed(frame.as_ref().map(|f| (u16::from(f.code), f.reason.as_str()))));
            }
            Some(Ok(_)) => return Ok(None),
            Some(Err(error)) => return Err(Broken::Link(error.to_string())),
            None => return Err(Broken::Link("the server hung up".to_owned())),
        };
        let frame: Frame = read(operation, &message)?;
        match frame.kind.as_str() {
            "next" => {
                let payload = frame.payload.map_or("null", |raw| raw.get());
                let answer: Answer<Map<String, Value>> = read(operation, payload)?;
                if !answer.errors.is_empty() {
                    return Err(sort(ClientError::refused(answer.errors)));
                }
                // The one field of a subscription, whatever its name.
                let item = answer.data.into_iter().flatten().next().map(|(_, item)| item);
                let item = item.ok_or_else(|| nonsense(operation, "an answer without data"))?;
                serde_json::from_value(item).map(Some).map_err(|error| nonsense(operation, error))
            }
            "error" => {
                let payload = frame.payload.map_or("[]", |raw| raw.get());
                let errors: Vec<GraphqlError> = read(operation, payload)?;
                Err(sort(ClientError::refused(errors)))
            }
            // A server ends a subscription of its own accord when its reader is too slow, or when it stops.
            "complete" => Err(Broken::Link("the server ended the subscription".to_owned())),
            "ping" => {
                send(&mut link.socket, &json!({"type": "pong"})).await?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

#[derive(serde::Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, borrow)]
    payload: Option<&'a serde_json::value::RawValue>,
}

fn read<'a, D: serde::Deserialize<'a>>(operation: &'static str, text: &'a str) -> Result<D, Broken> {
    serde_json::from_str(text).map_err(|error| nonsense(operation, error))
}

fn nonsense(operation: &'static str, reason: impl ToString) -> Broken {
    Broken::Refused(ClientError::Protocol { operation, reason: reason.to_string() })
}

/// A refusal that may pass is a break; any other is final.
fn sort(error: ClientError) -> Broken {
    if error.is_transient() { Broken::Link(error.to_string()) } else { Broken::Refused(error) }
}

/// A close code of 4400..4500 means that the protocol itself was refused; trying again cannot help.
fn closed(frame: Option<(u16, &str)>) -> Broken {
    match frame {
        Some((code @ 4400..4500, reason)) => Broken::Refused(ClientError::Protocol {
            operation: "connection_init",
            reason: format!("closed with {code} {reason}"),
        }),
        Some((code, reason)) => Broken::Link(format!("the server closed the connection: {code} {reason}")),
        None => Broken::Link("the server closed the connection".to_owned()),
    }
}

async fn send(socket: &mut Socket, message: &Value) -> Result<(), Broken> {
    socket.send(Message::text(message.to_string())).await.map_err(|error| Broken::Link(error.to_string()))
}

async fn connect(
    client: &Client,
    operation: Operation,
    variables: &Map<String, Value>,
    from: u64,
) -> Result<Socket, Broken> {
    let broken = |error: tokio_tungstenite::tungstenite::Error| Broken::Link(client.lost(error).to_string());
    let mut address = client.endpoint.clone();
    let scheme = if address.scheme() == "https" { "wss" } else { "ws" };
    let path = format!("{}/ws", address.path());
    address.set_path(&path);
    // Never fails: both schemes are special ones with a host.
    let _ = address.set_scheme(scheme);
    let mut request = address.as_str().into_client_request().map_err(broken)?;
    request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("graphql-transport-ws"));
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.map_err(broken)?;
    send(&mut socket, &json!({"type": "connection_init"})).await?;
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => {
                let frame: Frame =
                    serde_json::from_str(&text).map_err(|error| Broken::Link(error.to_string()))?;
                match frame.kind.as_str() {
                    "connection_ack" => break,
                    "ping" => send(&mut socket, &json!({"type": "pong"})).await?,
                    _ => {}
                }
            }
            Some(Ok(Message::Close(frame))) => {
                return Err(closed(frame.as_ref().map(|f| (u16::from(f.code), f.reason.as_str()))));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(broken(error)),
            None => return Err(Broken::Link("the server hung up".to_owned())),
        }
    }
    let mut variables = variables.clone();
    variables.insert("from".to_owned(), from.to_string().into());
    let payload =
        json!({"query": operation.document, "operationName": operation.name, "variables": variables});
    send(&mut socket, &json!({"type": "subscribe", "id": SUBSCRIPTION_ID, "payload": payload})).await?;
    Ok(socket)
}
