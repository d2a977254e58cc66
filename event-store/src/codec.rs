//! The seam where payloads could be encrypted per field.
//!
//! It sits between an event's JSON text and the stored bytes, below digests: the log hashes what it stores, so
//! that the chain can be verified without a key, and erasing a key does not break it.

use crate::store::StoreError;
use converge_domain::AggregateId;

/// Maps payload text to stored text and back. Both must be JSON.
pub trait PayloadCodec: Send + Sync + 'static {
    /// What is stored for `payload`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when a key cannot be had now.
    fn seal(&self, id: AggregateId, event_type: &str, payload: String) -> Result<String, StoreError>;
    /// The payload that was stored as `stored`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read.
    fn open(&self, id: AggregateId, event_type: &str, stored: String) -> Result<String, StoreError>;
}

/// Stores payloads as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl PayloadCodec for Identity {
    fn seal(&self, _id: AggregateId, _event_type: &str, payload: String) -> Result<String, StoreError> {
        Ok(payload)
    }

    fn open(&self, _id: AggregateId, _event_type: &str, stored: String) -> Result<String, StoreError> {
        Ok(stored)
    }
}
