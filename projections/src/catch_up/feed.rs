//! Where a projection or a subscription gets its events: the log from any position on, then live.
//!
//! A seam of two small traits, so that tests can hand out a log they hold in memory and decide themselves
//! where batches end.

use async_trait::async_trait;
use converge_domain::Position;
use converge_event_store::{StoreError, StoredEvent};
use std::sync::Arc;

/// The log as something to follow.
pub trait Feed: Send + Sync + 'static {
    /// Follows from the event after `after` on: no gap, no duplicate, in position order. A slow follower
    /// reads from the store; it never holds anybody up.
    fn follow(&self, after: Position) -> Box<dyn Follow>;

    /// The end of the log as far as this process has heard; may lag behind other processes' appends.
    fn head(&self) -> Position;
}

/// One reader's place in the log.
#[async_trait]
pub trait Follow: Send {
    /// The next events, at least one; waits while there are none.
    ///
    /// # Errors
    /// When the store fails; the place is kept and the call may be repeated.
    async fn next(&mut self) -> Result<Arc<Vec<StoredEvent>>, StoreError>;
}
