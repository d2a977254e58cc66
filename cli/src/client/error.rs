//! What can go wrong between this process and a server, sorted by what the user should do about it.

use crate::exit::{Exit, Failure};
use serde::Deserialize;

/// A question that got no answer, or a refusal.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is not one.
    #[error("`{0}` is not a server address; write http://HOST:PORT")]
    Address(String),
    /// Nobody listens there, or the connection broke. For a mutation that was already sent, the outcome is
    /// unknown.
    #[error("cannot reach the server at {server}: {reason}")]
    Unreachable { server: String, reason: String },
    /// Something answered, but not GraphQL.
    #[error("the server answered with HTTP {status}: {body}")]
    Http { status: u16, body: String },
    /// An answer this client cannot read.
    #[error("the server's answer to `{operation}` makes no sense: {reason}")]
    Protocol { operation: &'static str, reason: String },
    /// The server refused; nothing was stored.
    #[error("{message}")]
    Refused { code: Code, message: String, violations: Vec<Violation> },
}

/// `extensions.code` of a GraphQL error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    Validation,
    Conflict,
    NotFound,
    Unavailable,
    BadRequest,
    /// A code newer than this client, or none.
    #[serde(other)]
    Other,
}

/// One broken rule of one document.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Violation {
    pub subject: String,
    pub pointer: String,
    pub message: String,
}

/// An entry of a GraphQL answer's `errors`.
#[derive(Debug, Deserialize)]
pub(super) struct GraphqlError {
    message: String,
    #[serde(default)]
    extensions: Option<Extensions>,
}

#[derive(Debug, Deserialize)]
struct Extensions {
    #[serde(default)]
    code: Option<Code>,
    #[serde(default)]
    violations: Vec<Violation>,
}

impl ClientError {
    /// Makes one refusal of an answer's errors; the first one's code counts, every violation is kept.
    pub(super) fn refused(errors: Vec<GraphqlError>) -> Self {
        let mut code = None;
        let mut messages = Vec::new();
        let mut violations = Vec::new();
        for error in errors {
            messages.push(error.message);
            if let Some(extensions) = error.extensions {
                code = code.or(extensions.code);
                violations.extend(extensions.violations);
            }
        }
        Self::Refused { code: code.unwrap_or(Code::Other), message: messages.join("; "), violations }
    }

    /// Whether the same question may well be answered in a moment: the server restarts, or is busy.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Http { status, .. } => matches!(status, 429 | 502 | 503 | 504),
            Self::Refused { code, .. } => *code == Code::Unavailable,
            Self::Address(_) | Self::Protocol { .. } => false,
        }
    }

    const fn exit(&self) -> Exit {
        match self {
            Self::Address(_) => Exit::Usage,
            Self::Refused { code: Code::Conflict, .. } => Exit::Conflict,
            Self::Refused { code: Code::NotFound, .. } => Exit::NotFound,
            _ => Exit::Failed,
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let exit = error.exit();
        match &error {
            // Every violation gets a line of its own: the list is the message.
            ClientError::Refused { violations, .. } if !violations.is_empty() => {
                let lines: Vec<String> = violations.iter().map(Violation::to_string).collect();
                let count = lines.len();
                let noun = if count == 1 { "violation" } else { "violations" };
                Self::new(exit, format_args!("{count} {noun}, nothing was applied\n{}", lines.join("\n")))
            }
            _ => Self::new(exit, error),
        }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The whole document's pointer is the empty string; a bare double space would read as a mistake.
        if self.pointer.is_empty() {
            write!(f, "{}: {}", self.subject, self.message)
        } else {
            write!(f, "{} {}: {}", self.subject, self.pointer, self.message)
        }
    }
}
