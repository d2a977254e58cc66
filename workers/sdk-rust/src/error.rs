//! How a task fails: transient unless it says otherwise.

use crate::json::Json;
use std::fmt;

/// Why a task failed. Any error converts into a transient one with `?`; [`terminal`] marks the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskError {
    pub(crate) message: String,
    pub(crate) terminal: bool,
    pub(crate) status: Option<Json>,
}

impl TaskError {
    /// Worth trying again, with backoff.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), terminal: false, status: None }
    }

    /// What the failed task still wants remembered, such as the id of a half-made object.
    #[must_use]
    pub fn with_status(mut self, status: impl Into<Json>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// The message that people will read.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// No retry until the spec or the config changes.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The status that is stored although the task failed.
    pub fn status(&self) -> Option<&Json> {
        self.status.as_ref()
    }
}

/// Marks a failure that no retry can cure.
pub fn terminal(error: impl fmt::Display) -> TaskError {
    TaskError { message: error.to_string(), terminal: true, status: None }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// `TaskError` is deliberately no `std::error::Error`: that makes room for this conversion, so that `?` works on any
// error in a handler.
impl<E: std::error::Error> From<E> for TaskError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::transient(message)
    }
}
