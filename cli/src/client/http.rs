//! One question, one answer.

use super::error::{ClientError, GraphqlError};
use super::operations::Operation;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest apply (32 MiB, 1,000 documents) is validated and committed within this on a small machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// How much of a strange answer is shown.
const EXCERPT_CHARS: usize = 300;

/// A server's address and the connections to it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    server: String,
    pub(super) endpoint: Url,
}

#[derive(Serialize)]
struct Request<'a, V> {
    query: &'a str,
    #[serde(rename = "operationName")]
    operation_name: &'a str,
    variables: V,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: DeserializeOwned"))]
pub(super) struct Answer<T> {
    #[serde(default = "none")]
    pub data: Option<T>,
    #[serde(default)]
    pub errors: Vec<GraphqlError>,
}

fn none<T>() -> Option<T> {
    None
}

impl Client {
    /// A client of the API at `server`, such as `http://localhost:8080`. Connects to nothing yet.
    ///
    /// # Errors
    /// When `server` is not an http(s) address.
    pub fn new(server: &str) -> Result<Self, ClientError> {
        let refuse = || ClientError::Address(server.to_owned());
        let mut endpoint = Url::parse(server).map_err(|_| refuse())?;
        if !matches!(endpoint.scheme(), "http" | "https") || !endpoint.has_host() {
            return Err(refuse());
        }
        let path = format!("{}/graphql", endpoint.path().trim_end_matches('/'));
        endpoint.set_path(&path);
        endpoint.set_query(None);
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .user_agent(concat!("converge/", env!("CARGO_PKG_VERSION")))
            .default_headers(identity())
            .build()
            .map_err(|error| ClientError::Unreachable {
                server: server.to_owned(),
                reason: root_cause(&error),
            })?;
        Ok(Self { http, server: server.to_owned(), endpoint })
    }

    /// Asks once. `variables` may hold raw JSON text, which reaches the server byte for byte.
    ///
    /// # Errors
    /// See [`ClientError`]; an answer with both data and errors counts as refused.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        operation: Operation,
        variables: impl Serialize,
    ) -> Result<T, ClientError> {
        let protocol = |reason: String| ClientError::Protocol { operation: operation.name, reason };
        let request = Request { query: operation.document, operation_name: operation.name, variables };
        let body = serde_json::to_vec(&request).map_err(|error| protocol(error.to_string()))?;
        let response = self
            .http
            .post(self.endpoint.clone())
            .header("content-type", "application/json")
            .header("accept", "application/graphql-response+json, application/json;q=0.9")
            .body(body)
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        match serde_json::from_slice::<Answer<T>>(&body) {
            Ok(answer) if !answer.errors.is_empty() => Err(ClientError::refused(answer.errors)),
            Ok(Answer { data: Some(data), .. }) if status.is_success() => Ok(data),
            // Not an answer of this API: an older server, a proxy's error page, a refused body.
            Ok(_) => Err(protocol("it holds neither data nor errors".to_owned())),
            Err(error) if status.is_success() => Err(protocol(error.to_string())),
            Err(_) => {
                let text = String::from_utf8_lossy(&body);
                let body = text.trim().chars().take(EXCERPT_CHARS).collect();
                Err(ClientError::Http { status: status.as_u16(), body })
            }
        }
    }

    /// The server's metrics, in Prometheus' text format.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let mut address = self.endpoint.clone();
        let path = address.path().strip_suffix("/graphql").unwrap_or_default().to_owned();
        address.set_path(&format!("{path}/metrics"));
        let response = self.http.get(address).send().await.map_err(|error| self.unreachable(&error))?;
        response.text().await.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        self.lost(root_cause(error))
    }

    pub(super) fn lost(&self, reason: impl ToString) -> ClientError {
        ClientError::Unreachable { server: self.server.clone(), reason: reason.to_string() }
    }
}

/// Who asks, as the log will tell it: `CONVERGE_ACTOR`, else the user's login name.
fn identity() -> HeaderMap {
    let actor = ["CONVERGE_ACTOR", "USER", "LOGNAME"].into_iter().find_map(|name| {
        let name = std::env::var(name).ok().filter(|actor| !actor.is_empty())?;
        HeaderValue::from_str(&name).ok()
    });
    actor.map(|actor| (HeaderName::from_static("x-converge-actor"), actor)).into_iter().collect()
}

/// The innermost cause: reqwest's own sentences only repeat the address.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
