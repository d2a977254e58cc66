//! Values that GraphQL's own scalars would damage.

use crate::error::ApiError;
use async_graphql::{ID, InputValueError, InputValueResult, Scalar, ScalarType, Value};
use converge_domain::{ResourceId, Timestamp};

/// Any JSON value. Numbers keep their digits: 64-bit integers stay integers.
#[derive(Clone, PartialEq, Debug)]
pub struct Json(pub serde_json::Value);

#[Scalar(name = "JSON")]
impl ScalarType for Json {
    fn parse(value: Value) -> InputValueResult<Self> {
        Ok(Self(value.into_json()?))
    }

    fn to_value(&self) -> Value {
        // Every JSON value has a GraphQL value; the signature is wider than the fact.
        Value::from_json(self.0.clone()).unwrap_or_default()
    }
}

impl Json {
    /// Anything serialisable as JSON.
    ///
    /// # Errors
    /// `UNAVAILABLE` when it is not; never for the domain's types.
    pub fn of(value: &impl serde::Serialize) -> Result<Self, ApiError> {
        serde_json::to_value(value).map(Self).map_err(|error| ApiError::unavailable(error.to_string()))
    }
}

/// A 64-bit number (a log position, a generation) as a decimal string, since many clients hold numbers as
/// doubles. Input may be an integer too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position(pub u64);

#[Scalar(name = "Position")]
impl ScalarType for Position {
    fn parse(value: Value) -> InputValueResult<Self> {
        let number = match &value {
            // Digits only: `parse` alone would let "+1" pass.
            Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            Value::Number(number) => number.as_u64(),
            _ => None,
        };
        match number {
            // The log counts in PostgreSQL's bigint.
            Some(number) if i64::try_from(number).is_ok() => Ok(Self(number)),
            _ => {
                Err(InputValueError::custom("a position is a decimal number of at most 63 bits, as a string"))
            }
        }
    }

    fn to_value(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

impl From<converge_domain::Position> for Position {
    fn from(position: converge_domain::Position) -> Self {
        Self(position.0)
    }
}

impl From<Position> for converge_domain::Position {
    fn from(position: Position) -> Self {
        Self(position.0)
    }
}

/// An instant, RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DateTime(pub Timestamp);

#[Scalar(name = "DateTime")]
impl ScalarType for DateTime {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::String(text) => chrono::DateTime::parse_from_rfc3339(text)
                .map(|instant| Self(Timestamp(instant.timestamp_millis())))
                .map_err(|error| InputValueError::custom(format!("not an RFC 3339 instant: {error}"))),
            _ => Err(InputValueError::expected_type(value)),
        }
    }

    fn to_value(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

/// The resource id in a client's `ID`.
///
/// # Errors
/// `BAD_REQUEST` for anything but a uuid.
pub fn resource_id(id: &ID) -> Result<ResourceId, ApiError> {
    id.parse().map(ResourceId).map_err(|_| {
        ApiError::bad_request(format!("`{}` is not the id of a resource: not a uuid", id.as_str()))
    })
}
