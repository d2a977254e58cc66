//! A client of `graphql-transport-ws`, message by message.

use super::GENEROUS;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub struct Client(pub WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    pub async fn open(address: SocketAddr) -> Self {
        Self::open_as(address, Some("graphql-transport-ws")).await
    }

    pub async fn open_as(address: SocketAddr, protocol: Option<&str>) -> Self {
        let mut request = format!("ws://{address}/graphql/ws").into_client_request().unwrap();
        if let Some(protocol) = protocol {
            request.headers_mut().insert("sec-websocket-protocol", protocol.parse().unwrap());
        }
        Self(connect_async(request).await.unwrap().0)
    }

    /// Opened and acknowledged.
    pub async fn ready(address: SocketAddr) -> Self {
        let mut client = Self::open(address).await;
        client.say(json!({"type": "connection_init"})).await;
        assert_eq!(client.hear().await, json!({"type": "connection_ack"}));
        client
    }

    pub async fn say(&mut self, message: Value) {
        self.say_text(&message.to_string()).await;
    }

    pub async fn say_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    pub async fn subscribe(&mut self, id: &str, query: &str, variables: Value) {
        let payload = json!({"query": query, "variables": variables});
        self.say(json!({"type": "subscribe", "id": id, "payload": payload})).await;
    }

    /// The next message of the protocol.
    pub async fn hear(&mut self) -> Value {
        loop {
            match tokio::time::timeout(GENEROUS, self.0.next()).await.unwrap().unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("expected a message, got {other:?}"),
            }
        }
    }

    /// The next result of operation `id`, which must have data.
    pub async fn next(&mut self, id: &str) -> Value {
        let mut message = self.hear().await;
        assert_eq!((&message["type"], &message["id"]), (&json!("next"), &json!(id)), "{message}");
        assert!(message["payload"].get("errors").is_none(), "{message}");
        message["payload"]["data"].take()
    }

    /// The code with which the server closes next.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            match tokio::time::timeout(GENEROUS, self.0.next()).await.unwrap().unwrap().unwrap() {
                Message::Close(Some(frame)) => return frame.code.into(),
                Message::Ping(_) | Message::Pong(_) | Message::Text(_) => {}
                other => panic!("expected a close, got {other:?}"),
            }
        }
    }
}
