//! From an executed (or refused) request to bytes and a status.

use super::negotiate::Media;
use crate::error::ApiError;
use async_graphql::{Response, ServerError, Value};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use std::collections::BTreeMap;

/// A response as it goes over the wire: `data` is absent, not null, when nothing was executed.
#[derive(Serialize)]
pub struct Wire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [ServerError],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extensions: &'a BTreeMap<String, Value>,
}

impl<'a> Wire<'a> {
    pub fn new(response: &'a Response) -> Self {
        let data = (!is_request_error(response)).then_some(&response.data);
        Self { data, errors: &response.errors, extensions: &response.extensions }
    }
}

/// True when nothing was executed: an error while executing carries the path of its field.
pub fn is_request_error(response: &Response) -> bool {
    response.data == Value::Null
        && !response.errors.is_empty()
        && response.errors.iter().all(|error| error.path.is_empty())
}

/// The answer to a well-formed request.
pub fn executed(media: Media, response: &Response) -> axum::response::Response {
    let status = match media {
        Media::Response if is_request_error(response) => StatusCode::BAD_REQUEST,
        Media::Response | Media::Legacy => StatusCode::OK,
    };
    send(media, status, response)
}

/// A request that did not get as far as being executed.
pub fn refused(media: Media, status: StatusCode, error: ApiError) -> axum::response::Response {
    send(media, status, &Response::from_errors(vec![error.into_server_error()]))
}

fn send(media: Media, status: StatusCode, response: &Response) -> axum::response::Response {
    // The value's own order is the query's field order, so it is written as it is, not through a map.
    let (status, body) = match serde_json::to_vec(&Wire::new(response)) {
        Ok(body) => (status, body),
        Err(error) => {
            tracing::error!(%error, "a response cannot be written as JSON");
            (StatusCode::INTERNAL_SERVER_ERROR, Vec::new())
        }
    };
    let mut answer = axum::response::Response::new(Body::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    answer
}
