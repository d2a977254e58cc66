//! The product's feed: the log's own tail.

use super::{Feed, Follow};
use async_trait::async_trait;
use converge_domain::Position;
use converge_event_store::tail::{Follower, Tail};
use converge_event_store::{StoreError, StoredEvent};
use std::sync::Arc;

impl Feed for Tail {
    fn follow(&self, after: Position) -> Box<dyn Follow> {
        Box::new(Tail::follow(self, after))
    }

    fn head(&self) -> Position {
        Tail::head(self)
    }
}

#[async_trait]
impl Follow for Follower {
    async fn next(&mut self) -> Result<Arc<Vec<StoredEvent>>, StoreError> {
        Follower::next(self).await
    }
}
