//! Liveness and readiness.

use super::App;
use axum::extract::State;
use axum::http::StatusCode;
use std::fmt::Write;
use std::time::Duration;

/// Long enough for a busy database, short enough for a probe.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// The process runs. Asks nothing of the database: restarting the process would not bring that back.
pub async fn livez() -> &'static str {
    "ok\n"
}

/// The process can serve: the database answers. Says what is wrong; a stopped projection is told, but
/// answers go on (with the position they are true at), so it does not take the process out of service.
pub async fn readyz(State(app): State<App>) -> (StatusCode, String) {
    let mut report = String::new();
    let ping = sqlx::query("SELECT 1").execute(app.state.list.pool());
    let status = match tokio::time::timeout(PING_TIMEOUT, ping).await {
        Ok(Ok(_)) => StatusCode::OK,
        Ok(Err(error)) => {
            let _ = writeln!(report, "database: {error}");
            StatusCode::SERVICE_UNAVAILABLE
        }
        Err(_) => {
            let _ = writeln!(report, "database: no answer within {} s", PING_TIMEOUT.as_secs());
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    for (name, position, reason) in app.state.board.stopped() {
        let _ = writeln!(report, "projection {name}: stopped at position {position}: {reason}");
    }
    if report.is_empty() {
        report.push_str("ok\n");
    }
    (status, report)
}
