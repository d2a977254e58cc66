//! Every bound of the API in one place. Nothing a client sends is unbounded.

use std::time::Duration;

/// Documents of one apply.
pub const APPLY_DOCUMENTS_MAX: usize = 1_000;
/// Resources that one delete or action is about.
pub const TARGETS_MAX: usize = 1_000;
/// Resources of one graph.
pub const GRAPH_NODES_MAX: usize = 5_000;
/// Events of a dependent that are looked through for the one that gave a value.
pub const PROVENANCE_EVENTS_MAX: u64 = 5_000;
/// Bytes of the documents of one apply, and with the query around them of one request.
pub const APPLY_BYTES_MAX: usize = 32 * 1024 * 1024;
pub const REQUEST_BYTES_MAX: usize = APPLY_BYTES_MAX + 64 * 1024;
/// Rows of one page.
pub const PAGE_MAX: i32 = 1_000;
/// Events shown with one resource.
pub const RESOURCE_EVENTS_MAX: i32 = 200;
/// Nesting of a query. The standard introspection query needs 13 and tools go to 20.
pub const DEPTH_MAX: usize = 24;
/// Fields of an answer, each list counted at its page size: a thousand resources with everything about them
/// fit, a thousand resources with a hundred children each do not.
pub const COMPLEXITY_MAX: usize = 200_000;
/// Log events one `events` request looks through for a filter that no index serves.
pub const SCAN_EVENTS_MAX: usize = 20_000;
/// Bearers of one name that an event filter follows back in time.
pub const NAME_BEARERS_MAX: u32 = 100;
/// Identities kept in memory; each about 200 bytes.
pub const IDENTITIES_CACHED_MAX: usize = 100_000;
/// Folded states that all `resourceChanged` subscriptions keep together; each about 1.5 kB.
pub const WATCHED_STATES_MAX: usize = 20_000;
/// Batches of the log that are kept named for all subscriptions; live ones hold some hundred events, which the log's own memory
/// of the last events holds anyway.
pub const WATCHED_BATCHES_MAX: usize = 256;

/// Bounds an operator or a test may set.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a read waits for its projection to reach `minPosition`.
    pub min_position_wait: Duration,
    /// HTTP requests executed at once; more are answered 503.
    pub http_requests_max: usize,
    /// Open WebSockets; more are refused with 503.
    pub ws_connections_max: usize,
    /// Operations running on one WebSocket.
    pub ws_operations_max: usize,
    /// From the upgrade to `connection_init`; later is closed with 4408.
    pub ws_init_timeout: Duration,
    /// Between two pings; a peer silent for three of them is dropped.
    pub ws_ping_every: Duration,
    /// One message must be taken by the peer's socket within this, or the connection is dropped. Every
    /// event carries its position, so the reader resumes from there.
    pub ws_send_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            min_position_wait: Duration::from_secs(10),
            http_requests_max: 256,
            ws_connections_max: 1_000,
            ws_operations_max: 64,
            ws_init_timeout: Duration::from_secs(10),
            ws_ping_every: Duration::from_secs(20),
            ws_send_timeout: Duration::from_secs(30),
        }
    }
}

/// The page size a client asked for, or the default.
///
/// # Errors
/// For a negative size or one beyond `max`: answering less than asked would look like the end of the list.
pub fn page_size(first: Option<i32>, default: i32, max: i32) -> Result<u32, crate::ApiError> {
    let first = first.unwrap_or(default);
    match u32::try_from(first) {
        Ok(size) if first <= max => Ok(size),
        _ => Err(crate::ApiError::bad_request(format!("`first` must be between 0 and {max}, got {first}"))),
    }
}

/// What a list weighs in the complexity of a query.
pub fn weight(first: Option<i32>, default: i32, child_complexity: usize) -> usize {
    let rows = usize::try_from(first.unwrap_or(default)).unwrap_or(0).max(1);
    rows.saturating_mul(child_complexity).saturating_add(1)
}
