//! A JSON document that is carried as it came.
//!
//! Documents travel as bytes so that a number or a key order that this process does not understand survives it. A
//! handler parses what it needs.

use crate::error::{TaskError, terminal};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// See the module. Not checked until parsed; what comes from a broker is JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Json(pub(crate) Bytes);

impl Json {
    /// The document's text, or a terminal error when it is not JSON.
    ///
    /// # Errors
    /// When the bytes are not one JSON value.
    pub fn raw(&self) -> Result<&RawValue, TaskError> {
        serde_json::from_slice(&self.0).map_err(terminal)
    }

    /// The document as a type of the handler's own.
    ///
    /// # Errors
    /// Terminal, naming the field: a spec that does not fit will not fit the next time either.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, TaskError> {
        serde_json::from_slice(&self.0).map_err(terminal)
    }

    /// The document as a tree.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn value(&self) -> Result<Value, TaskError> {
        self.parse()
    }

    /// The bytes as they came.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(value: Box<RawValue>) -> Self {
        Self(String::from(Box::<str>::from(value)).into())
    }
}
