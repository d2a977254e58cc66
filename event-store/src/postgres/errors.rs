//! Sorting database errors: known failed, or outcome unknown.

use crate::store::StoreError;
use converge_domain::BatchId;

/// `append` found the last partition full.
pub(super) const PARTITION_FULL: &str = "CV001";

/// A head moved between the read and the update of an `append` that sent no locks.
pub(super) const HEAD_MOVED: &str = "CV004";

/// The SQLSTATE of an error that the server reported.
pub(super) fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(|error| error.code()).map(|code| code.into_owned())
}

/// Classifies the failure of a call whose loss leaves nothing behind: a read, or a write that may be repeated.
pub(super) fn classify(error: &sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            let text = format!("{code}: {}", database.message());
            match code.as_ref() {
                // A race that the checks of `append` cannot see: the loser's next attempt sees the winner. Any
                // other unique key of ours is a data error, as repeating would not help.
                "23505" if is_race(database.constraint()) => StoreError::Retry(text),
                "40001" | "40P01" | "55P03" | PARTITION_FULL | HEAD_MOVED => StoreError::Retry(text),
                // Unavailable: 08, 53, 57, 25006, and everything unexpected (a missing function, a lost right). Nothing was
                // written, and a person may mend it while we back off; only data errors are the batch's own fault.
                _ if code.starts_with("22") || code.starts_with("23") => StoreError::Data(text),
                _ => StoreError::Unavailable(text),
            }
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_) => {
            StoreError::Corrupt(error.to_string())
        }
        sqlx::Error::Encode(_) => StoreError::Data(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

/// Classifies the failure of the append call itself.
///
/// An error that the server *reports* and survives means that the transaction was rolled back. Two kinds of
/// failure prove nothing: a lost connection, and the server's goodbye (57P01 to 57P03), which a backend may also send
/// between its commit and the answer. Both are resolved by looking the batch up.
pub(super) fn classify_append(error: &sqlx::Error, batch_id: BatchId) -> StoreError {
    match error {
        sqlx::Error::Database(database) => match database.code().unwrap_or_default().as_ref() {
            "57P01" | "57P02" | "57P03" | "57P05" => StoreError::OutcomeUnknown(batch_id),
            code if code.starts_with("08") => StoreError::OutcomeUnknown(batch_id),
            _ => classify(error),
        },
        // Refused by the client before anything was sent.
        sqlx::Error::Encode(_) => StoreError::Data(error.to_string()),
        _ => StoreError::OutcomeUnknown(batch_id),
    }
}

fn is_race(constraint: Option<&str>) -> bool {
    matches!(constraint, Some("head_pkey" | "names_pkey" | "command_pkey"))
}
