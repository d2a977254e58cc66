//! One WebSocket connection that carries many subscriptions. Unlike the client's follower it mends nothing: a
//! connection that breaks in a measurement is a finding, and is reported as one.

use anyhow::{Context, bail};
use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// An open, acknowledged connection.
pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(default)]
    id: Option<&'a str>,
    #[serde(default, borrow)]
    payload: Option<&'a RawValue>,
}

impl Socket {
    /// Connects to the server at `http`.
    pub async fn connect(http: &str) -> anyhow::Result<Self> {
        let address = format!("{}/graphql/ws", http.replacen("http", "ws", 1));
        let mut request = address.into_client_request()?;
        let protocol = HeaderValue::from_static("graphql-transport-ws");
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        let (socket, _) = tokio_tungstenite::connect_async(request).await.context("cannot subscribe")?;
        let mut socket = Self(socket);
        socket.send(&json!({"type": "connection_init"})).await?;
        while socket.message(|frame| (frame.kind == "connection_ack").then_some(())).await?.is_none() {}
        Ok(socket)
    }

    /// Starts a subscription; what it yields comes under `id`.
    pub async fn subscribe(&mut self, id: u32, query: &str, variables: &Value) -> anyhow::Result<()> {
        let payload = json!({"query": query, "variables": variables});
        self.send(&json!({"type": "subscribe", "id": id.to_string(), "payload": payload})).await
    }

    /// The next thing that any subscription yields, and which one. May be dropped while it waits.
    pub async fn next<T: for<'de> Deserialize<'de>>(&mut self) -> anyhow::Result<(u32, T)> {
        loop {
            let read = |frame: &Frame<'_>| -> Option<anyhow::Result<(u32, T)>> {
                let id = frame.id.unwrap_or_default();
                let payload = frame.payload.map_or("null", RawValue::get);
                match frame.kind {
                    "next" => Some(
                        serde_json::from_str::<Answer<T>>(payload)
                            .with_context(|| format!("a subscription yields {payload}"))
                            .and_then(|answer| Ok((id.parse()?, answer.data))),
                    ),
                    "error" | "complete" => {
                        Some(Err(anyhow::anyhow!("subscription {id} has ended: {payload}")))
                    }
                    _ => None,
                }
            };
            if let Some(item) = self.message(read).await? {
                return item;
            }
        }
    }

    async fn message<T>(&mut self, read: impl FnOnce(&Frame<'_>) -> Option<T>) -> anyhow::Result<Option<T>> {
        let text = match self.0.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(frame))) => bail!("the server closed the connection: {frame:?}"),
            // The protocol's own pings are answered below us.
            Some(Ok(_)) => return Ok(None),
            Some(Err(error)) => return Err(error).context("the connection broke"),
            None => bail!("the server hung up"),
        };
        let frame: Frame<'_> = serde_json::from_str(&text)?;
        if frame.kind == "ping" {
            self.send(&json!({"type": "pong"})).await?;
            return Ok(None);
        }
        Ok(read(&frame))
    }

    async fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        Ok(self.0.send(Message::text(message.to_string())).await?)
    }
}

#[derive(Deserialize)]
struct Answer<T> {
    data: T,
}
