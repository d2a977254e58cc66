//! The log as batches, through the store's shorter troubles.

use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::Position;
use async_graphql::futures_util::Stream;
use converge_domain::Position as LogPosition;
use converge_event_store::{StoreError, StoredEvent};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A watch outlives a database restart, but says so when the database stays away.
const PATIENCE: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_millis(250);

/// Where a watch starts: at `from`, or at the end of the log.
///
/// # Errors
/// `BAD_REQUEST` for a position that does not exist yet: whoever asks for it looks at another log.
pub async fn start(state: &ApiState, from: Option<Position>) -> Result<LogPosition, ApiError> {
    let head = state.store.log_head().await?.position;
    match from.map(LogPosition::from) {
        Some(from) if from > head => Err(ApiError::bad_request(format!(
            "`from` {from} is beyond the end of the log, which is at {head}"
        ))),
        Some(from) => Ok(from),
        None => Ok(head),
    }
}

/// Batches behind `after`, for ever. Pulled: a reader that takes its time holds nobody up, the follower
/// reads the store from where it was. An error is the last item.
pub fn batches(
    state: &ApiState,
    after: LogPosition,
) -> impl Stream<Item = Result<Arc<Vec<StoredEvent>>, ApiError>> + use<> {
    let follower = state.feed.follow(after);
    futures::stream::unfold(Some(follower), |follower| async {
        let mut follower = follower?;
        let mut trouble_since: Option<Instant> = None;
        loop {
            match follower.next().await {
                Ok(batch) => return Some((Ok(batch), Some(follower))),
                Err(error @ (StoreError::Corrupt(_) | StoreError::Data(_))) => {
                    return Some((Err(error.into()), None));
                }
                Err(error) => {
                    let since = *trouble_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > PATIENCE {
                        return Some((Err(error.into()), None));
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    })
}
