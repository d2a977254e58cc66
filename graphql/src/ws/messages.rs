//! The messages of the protocol.

use crate::http::Wire;
use async_graphql::{Response, ServerError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a client says. Payloads stay raw text, since variables are checked as text.
#[derive(Debug)]
pub enum ClientMessage<'a> {
    ConnectionInit,
    Ping,
    Pong,
    Subscribe { id: String, payload: &'a RawValue },
    Complete { id: String },
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(rename = "type")]
    message_type: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default, borrow)]
    payload: Option<&'a RawValue>,
}

impl<'a> ClientMessage<'a> {
    /// Reads one message.
    ///
    /// # Errors
    /// What is wrong with it: the connection is then closed with 4400.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let raw: Raw<'a> = serde_json::from_str(text).map_err(|error| format!("Invalid message: {error}"))?;
        let id = |id: Option<String>| {
            id.filter(|id| !id.is_empty()).ok_or_else(|| "Invalid message: it needs an id".to_owned())
        };
        let optional_object = || match raw.payload.map(RawValue::get) {
            None | Some("null") => Ok(()),
            Some(text) if text.starts_with('{') => Ok(()),
            Some(_) => Err("Invalid message: the payload must be an object".to_owned()),
        };
        match raw.message_type.as_str() {
            "connection_init" => optional_object().map(|()| Self::ConnectionInit),
            "ping" => optional_object().map(|()| Self::Ping),
            "pong" => optional_object().map(|()| Self::Pong),
            "subscribe" => {
                let payload = raw.payload.ok_or("Invalid message: subscribe needs a payload")?;
                Ok(Self::Subscribe { id: id(raw.id)?, payload })
            }
            "complete" => Ok(Self::Complete { id: id(raw.id)? }),
            other => Err(format!("Invalid message: unknown type {other}")),
        }
    }
}

/// What the server says.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage<'a> {
    ConnectionAck,
    Pong,
    Next { id: &'a str, payload: Wire<'a> },
    Error { id: &'a str, payload: &'a [ServerError] },
    Complete { id: &'a str },
}

impl<'a> ServerMessage<'a> {
    /// One result of an operation.
    pub fn next(id: &'a str, response: &'a Response) -> Self {
        Self::Next { id, payload: Wire::new(response) }
    }
}
