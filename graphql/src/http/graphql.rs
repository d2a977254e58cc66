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
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
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
        Method::GET => get(&app, &parts).await,
        Method::POST => post(&app, &parts, body).await,
        _ => Err(Refused::not_allowed("GET, POST", "use GET or POST")),
    };
    match reply {
        Ok(response) => executed(media, &response),
        Err(refusal) => refusal.answer(media),
    }
}

/// A request that was not executed.
struct Refused {
    /// None: a well-formed request, refused as an invalid query would be.
    status: Option<StatusCode>,
    /// For 405.
    allow: Option<&'static str>,
    error: ApiError,
}

impl Refused {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status: Some(status), allow: None, error: ApiError::bad_request(error) }
    }

    fn malformed(error: &impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }

    fn not_allowed(allow: &'static str, error: &str) -> Self {
        Self { allow: Some(allow), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, error) }
    }

    fn answer(self, media: Media) -> Response {
        let mut response = match self.status {
            Some(status) => refused(media, status, self.error),
            None => {
                executed(media, &async_graphql::Response::from_errors(vec![self.error.into_server_error()]))
            }
        };
        if let Some(allow) = self.allow {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed(error) => Self::malformed(&error),
            Refusal::Unfaithful(error) => Self { status: None, allow: None, error },
        }
    }
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

async fn get(app: &App, request: &Parts) -> Result<async_graphql::Response, Refused> {
    let Query(parameters) = Query::<Parameters>::try_from_uri(&request.uri)
        .map_err(|error: QueryRejection| Refused::malformed(&error))?;
    let raw = |text: &Option<String>| -> Result<Option<Box<RawValue>>, Refused> {
        text.as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| serde_json::from_str(text).map_err(|error| Refused::malformed(&error)))
            .transpose()
    };
    let (variables, extensions) = (raw(&parameters.variables)?, raw(&parameters.extensions)?);
    let envelope = Envelope {
        query: parameters.query,
        operation_name: parameters.operation_name,
        variables: variables.as_deref(),
        extensions: extensions.as_deref(),
    };
    let mut query = envelope.into_request()?;
    // GET must be safe: links get followed, prefetched and cached.
    if operation_type(&mut query) == Some(OperationType::Mutation) {
        return Err(Refused::not_allowed("POST", "mutations go by POST"));
    }
    Ok(execute(app, &request.headers, query).await)
}

async fn post(app: &App, request: &Parts, body: Body) -> Result<async_graphql::Response, Refused> {
    if !is_json(&request.headers) {
        let error = "the body must be application/json in UTF-8";
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    let body = to_bytes(body, REQUEST_BYTES_MAX).await.map_err(|_| {
        let error = format!("the body could not be read, or is longer than {REQUEST_BYTES_MAX} bytes");
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, error)
    })?;
    let text = std::str::from_utf8(&body).map_err(|error| Refused::malformed(&error))?;
    let query = Envelope::parse(text)?.into_request()?;
    Ok(execute(app, &request.headers, query).await)
}

async fn execute(app: &App, headers: &HeaderMap, request: async_graphql::Request) -> async_graphql::Response {
    let stamp = ReadStamp::default();
    let mut response = app.schema.execute(request.data(context(headers)).data(stamp.clone())).await;
    if let Some(position) = stamp.get() {
        response.extensions.insert("position".to_owned(), Value::from(position.to_string()));
    }
    response
}
