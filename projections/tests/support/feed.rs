//! A log in memory that a test extends and cuts into batches as it likes.

#![allow(dead_code, reason = "each test binary uses its part")]

use async_trait::async_trait;
use converge_domain::Position;
use converge_event_store::{StoreError, StoredEvent};
use converge_projections::catch_up::{Feed, Follow};
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Clone)]
pub struct MemoryFeed {
    log: Arc<watch::Sender<Vec<StoredEvent>>>,
    batch: usize,
}

impl MemoryFeed {
    /// Hands out at most `batch` events at a time.
    pub fn new(events: Vec<StoredEvent>, batch: usize) -> Self {
        Self { log: Arc::new(watch::Sender::new(events)), batch }
    }

    pub fn extend(&self, events: &[StoredEvent]) {
        self.log.send_modify(|log| log.extend_from_slice(events));
    }
}

impl Feed for MemoryFeed {
    fn follow(&self, after: Position) -> Box<dyn Follow> {
        Box::new(Follower { log: self.log.subscribe(), after, batch: self.batch })
    }

    fn head(&self) -> Position {
        Position(self.log.borrow().len() as u64)
    }
}

struct Follower {
    log: watch::Receiver<Vec<StoredEvent>>,
    after: Position,
    batch: usize,
}

#[async_trait]
impl Follow for Follower {
    async fn next(&mut self) -> Result<Arc<Vec<StoredEvent>>, StoreError> {
        let after = usize::try_from(self.after.0).unwrap();
        let log = self
            .log
            .wait_for(|log| log.len() > after)
            .await
            .map_err(|_| StoreError::Unavailable("the test is over".to_owned()))?;
        let end = log.len().min(after + self.batch);
        let events = log[after..end].to_vec();
        self.after = Position(end as u64);
        Ok(Arc::new(events))
    }
}
