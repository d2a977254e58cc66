//! `/graphql`, as the GraphQL-over-HTTP specification wants it.

use super::answer::{executed, refused};
use super::negotiate::{Media, accepted, is_json};
use super::{App, context};
use crate::consistency::ReadStamp;
use crate::error::ApiError;
use crate::limits::REQUEST_BYTES_MAX;
use crate::request::{Envelope, Refusal, operation_type};
use async_graphql::Value;
use async_graphql::parser::types::OperationType;
use axum::body::{Body, to_bytes};
use axum::extract::{Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Answers GET (queries only) and POST.
pub async fn graphql(State(app): State<App>, request: Request<Body>) -> Response {
    let Some(media) = accepted(request.headers()) else {
        let error = "answers are application/graphql-response+json or application/json";
        return refused(Media::Legacy, StatusCode::NOT_ACCEPTABLE, ApiError::bad_request(error));
    };
    let Ok(_permit) = app.requests.try_acquire() else {
        let error = ApiError::unavailable("too many requests at once; try again");
        return refused(media, StatusCode::SERVICE_UNAVAILABLE, error);
    };
    let (parts, body) = request.into_parts();
    let reply = match parts.method {
        Method::GET => get(&app, media, &parts).await,
        Method::POST => post(&app, media, &parts, body).await,
        _ => Err(not_allowed(media, "GET, POST", "use GET or POST")),
    };
    reply.unwrap_or_else(|refusal| refusal)
}

/// The parameters of a GET; JSON ones as text.
#[derive(Deserialize)]
struct Parameters {
    query: Option<String>,
    #[serde(rename = "operationName")]
    operation_name: Option<String>,
    variables: Option<String>,
    extensions: Option<String>,
}

async fn get(app: &App, media: Media, request: &Parts) -> Result<Response, Response> {
    let malformed = |error: String| bad_request(media, error);
    let Query(parameters) =
        Query::<Parameters>::try_from_uri(&request.uri).map_err(|error| malformed(error.to_string()))?;
    let raw = |text: &'_ Option<String>| -> Result<Option<Box<RawValue>>, Response> {
        text.as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| serde_json::from_str(text).map_err(|error| malformed(error.to_string())))
            .transpose()
    };
    let (variables, extensions) = (raw(&parameters.variables)?, raw(&parameters.extensions)?);
    let envelope = Envelope {
        query: parameters.query,
        operation_name: parameters.operation_name,
        variables: variables.as_deref(),
        extensions: extensions.as_deref(),
    };
    let mut query = executable(media, envelope.into_request())?;
    // GET must be safe: links get followed, prefetched and cached.
    if operation_type(&mut query) == Some(OperationType::Mutation) {
        return Err(not_allowed(media, "POST", "mutations go by POST"));
    }
    Ok(execute(app, media, &request.headers, query).await)
}

async fn post(app: &App, media: Media, request: &Parts, body: Body) -> Result<Response, Response> {
    if !is_json(&request.headers) {
        let error = ApiError::bad_request("the body must be application/json in UTF-8");
        return Err(refused(media, StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    let body = to_bytes(body, REQUEST_BYTES_MAX).await.map_err(|_| {
        let error = format!("the body could not be read, or is longer than {REQUEST_BYTES_MAX} bytes");
        refused(media, StatusCode::PAYLOAD_TOO_LARGE, ApiError::bad_request(error))
    })?;
    let text = std::str::from_utf8(&body).map_err(|error| bad_request(media, error.to_string()))?;
    let query = executable(media, Envelope::parse(text).and_then(Envelope::into_request))?;
    Ok(execute(app, media, &request.headers, query).await)
}

async fn execute(
    app: &App,
    media: Media,
    headers: &axum::http::HeaderMap,
    request: async_graphql::Request,
) -> Response {
    let stamp = ReadStamp::default();
    let mut response = app.schema.execute(request.data(context(headers)).data(stamp.clone())).await;
    if let Some(position) = stamp.get() {
        response.extensions.insert("position".to_owned(), Value::from(position.to_string()));
    }
    executed(media, &response)
}

fn executable(
    media: Media,
    request: Result<async_graphql::Request, Refusal>,
) -> Result<async_graphql::Request, Response> {
    request.map_err(|refusal| match refusal {
        Refusal::Malformed(error) => bad_request(media, error),
        // A well-formed request with unacceptable values: refused like an invalid query would be.
        Refusal::Unfaithful(error) => {
            let response = async_graphql::Response::from_errors(vec![error.into_server_error()]);
            executed(media, &response)
        }
    })
}

fn bad_request(media: Media, error: String) -> Response {
    refused(media, StatusCode::BAD_REQUEST, ApiError::bad_request(error))
}

fn not_allowed(media: Media, allow: &'static str, error: &str) -> Response {
    let mut response = refused(media, StatusCode::METHOD_NOT_ALLOWED, ApiError::bad_request(error));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}
