//! One reader of the stream.

use super::{Shared, is_set, reached, stopped_error};
use crate::store::{StoreError, StoredEvent};
use converge_domain::Position;
use std::sync::Arc;
use tokio::sync::watch;

/// Reads the log in order from where it was told to start.
pub struct Follower {
    shared: Arc<Shared>,
    after: Position,
    head: watch::Receiver<Position>,
    stopped: watch::Receiver<bool>,
    history: u64,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, after: Position) -> Self {
        let (head, stopped) = (shared.head.subscribe(), shared.stopped.subscribe());
        let history = *shared.history.borrow();
        Self { shared, after, head, stopped, history }
    }

    /// The position of the last event handed out.
    pub const fn position(&self) -> Position {
        self.after
    }

    /// The next events: at least one, the first right behind the last one handed out. Waits for them. A call that is
    /// cancelled hands nothing out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the store cannot be read now (call again) or the log is shut down;
    /// [`StoreError::Corrupt`] when the log's history was replaced: this follower is of no more use.
    pub async fn next(&mut self) -> Result<Arc<Vec<StoredEvent>>, StoreError> {
        loop {
            if *self.shared.history.borrow() != self.history {
                return Err(StoreError::Corrupt("the log's history was replaced".to_owned()));
            }
            let (kept, frontier) = {
                let ring = self.shared.ring();
                (ring.after(self.after), ring.frontier())
            };
            if let Some(events) = kept {
                return Ok(self.hand_out(events));
            }
            if frontier > self.after {
                // Too far behind for memory.
                let shared = &self.shared;
                let behind = shared.pages.behind(shared.store.as_ref(), self.history, self.after, frontier);
                let events = behind.await?;
                return Ok(self.hand_out(events));
            }
            tokio::select! {
                moved = reached(&mut self.head, self.after.next()) => moved?,
                () = is_set(&mut self.stopped) => return Err(stopped_error()),
            }
        }
    }

    fn hand_out(&mut self, events: Arc<Vec<StoredEvent>>) -> Arc<Vec<StoredEvent>> {
        if let Some(last) = events.last() {
            self.after = last.position;
        }
        events
    }
}
