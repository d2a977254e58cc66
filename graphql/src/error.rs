//! What can go wrong, with the code that programs read.

use async_graphql::{ErrorExtensionValues, Value};
use converge_engine::gateway_api::{GatewayError, Violation};
use converge_event_store::StoreError;
use converge_projections::catch_up::WaitError;
use converge_projections::catch_up::resource_list::ReadError;

/// `extensions.code` of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Documents break rules; `extensions.violations` lists every one.
    Validation,
    /// It cannot be done in the present state of things.
    Conflict,
    NotFound,
    /// Nothing wrong with the request; try again.
    Unavailable,
    /// The request itself makes no sense.
    BadRequest,
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "VALIDATION",
            Self::Conflict => "CONFLICT",
            Self::NotFound => "NOT_FOUND",
            Self::Unavailable => "UNAVAILABLE",
            Self::BadRequest => "BAD_REQUEST",
        }
    }
}

/// A refused or failed request.
///
/// Deliberately not `Display`: async-graphql turns any displayable error into one without a code, and a `?`
/// must not lose it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiError {
    pub code: Code,
    pub message: String,
    /// For [`Code::Validation`].
    pub violations: Vec<Violation>,
}

impl ApiError {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), violations: Vec::new() }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, message)
    }

    pub fn validation(violations: Vec<Violation>) -> Self {
        let message = GatewayError::Validation(violations.clone()).to_string();
        Self { code: Code::Validation, message, violations }
    }

    /// As GraphQL shows it.
    pub fn into_server_error(self) -> async_graphql::ServerError {
        async_graphql::Error::from(self).into_server_error(async_graphql::Pos::default())
    }
}

impl From<ApiError> for async_graphql::Error {
    fn from(error: ApiError) -> Self {
        let mut extensions = ErrorExtensionValues::default();
        extensions.set("code", error.code.as_str());
        if error.code == Code::Validation {
            extensions.set("violations", Value::List(error.violations.iter().map(violation).collect()));
        }
        Self { message: error.message, source: None, extensions: Some(extensions) }
    }
}

fn violation(violation: &Violation) -> Value {
    let fields = [
        ("document", Value::from(violation.document)),
        ("subject", Value::from(violation.subject.as_str())),
        ("pointer", Value::from(violation.pointer.as_str())),
        ("message", Value::from(violation.message.as_str())),
    ];
    Value::Object(fields.into_iter().map(|(name, value)| (async_graphql::Name::new(name), value)).collect())
}

impl From<GatewayError> for ApiError {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Validation(violations) => Self::validation(violations),
            GatewayError::Conflict(message) => Self::new(Code::Conflict, message),
            GatewayError::NotFound(message) => Self::new(Code::NotFound, message),
            GatewayError::Unavailable(message) => Self::new(Code::Unavailable, message),
        }
    }
}

/// Whatever a read meets, the reader's request was fine: all of it is `UNAVAILABLE`, told apart by message.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "a read of the store failed");
        Self::unavailable(error.to_string())
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        tracing::warn!(%error, "a read of the list failed");
        Self::unavailable(format!("the database is unavailable: {error}"))
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Database(error) => error.into(),
            ReadError::Heads(error) => error.into(),
        }
    }
}

impl From<WaitError> for ApiError {
    fn from(error: WaitError) -> Self {
        Self::unavailable(error.to_string())
    }
}
