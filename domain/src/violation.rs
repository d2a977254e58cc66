//! One fault of something a user wrote: where it is and what is wrong.
//!
//! Every check of this crate answers with *all* faults it finds, so that a user corrects a document once.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A fault with its place.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Violation {
    /// RFC 6901, relative to what was checked; empty for the whole.
    pub pointer: String,
    /// What is wrong, in one sentence without a final full stop.
    pub message: String,
}

impl Violation {
    /// A fault at `pointer`.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }

    /// The same fault seen from further out: `prefix` is put before its pointer.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.pointer.insert_str(0, prefix);
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.pointer, self.message)
        }
    }
}
