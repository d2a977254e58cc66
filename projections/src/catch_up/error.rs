//! Why a batch was not applied: worth another try, or never.

use converge_domain::Position;
use converge_event_store::StoreError;

/// A batch that did not commit. Nothing of it was written.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The event at `position` can never be applied by this build.
    #[error("the event at position {position} cannot be applied: {reason}")]
    Poison { position: Position, reason: String },
    #[error("the log cannot be read: {0}")]
    Log(#[from] StoreError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// Another runner moved the checkpoint; this one must let go.
    #[error("another runner took the projection over")]
    Fenced,
    /// The rows were built by a newer version than this build's.
    #[error("the rows were built by version {stored}, this build knows {known}")]
    Newer { stored: i32, known: i32 },
}

impl ProjectError {
    /// True when the same batch may succeed later without anybody changing anything.
    ///
    /// Errors of the data (SQLSTATE 22, 23), of the statement (42) and the like repeat for ever; an unknown
    /// class counts as lasting, because a projection that stands still visibly is safer than one that spins.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Fenced => true,
            Self::Poison { .. }
            | Self::Newer { .. }
            | Self::Log(StoreError::Corrupt(_) | StoreError::Data(_)) => false,
            Self::Log(_) => true,
            Self::Database(error) => Self::is_transient_database(error),
        }
    }

    /// The same question for the database's own answer.
    pub(crate) fn is_transient_database(error: &sqlx::Error) -> bool {
        match error {
            sqlx::Error::Database(database) => database.code().is_some_and(|code| {
                ["08", "40", "53", "55", "57", "58"].iter().any(|class| code.starts_with(class))
                    || code == "25006"
                    || code == "25P03"
            }),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => true,
            _ => false,
        }
    }
}
