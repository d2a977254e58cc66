//! Instants as people read them.

use crate::duration;
use chrono::{DateTime, SecondsFormat, Utc};

/// How long ago `at` was: `5m10s`. A clock that runs behind the server's shows `0s`, not nonsense.
pub fn ago(at: DateTime<Utc>) -> String {
    duration::coarse((Utc::now() - at).to_std().unwrap_or_default())
}

/// How long until `at`, or `now`.
pub fn until(at: DateTime<Utc>) -> String {
    match (at - Utc::now()).to_std() {
        Ok(left) if left.as_secs() > 0 => format!("in {}", duration::coarse(left)),
        _ => "now".to_owned(),
    }
}

/// `2026-11-30T23:29:42.123Z`
pub fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
