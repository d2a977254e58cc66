//! Reading heads through the cache.

use super::Log;
use crate::store::{Head, StoreError};
use converge_domain::AggregateId;

impl Log {
    /// The heads among `ids` that exist, in no order; each id at most once among them.
    ///
    /// From memory where possible, so an answer may be older than the database, but never older than the frontier
    /// of [`Log::tail`] when the call began: own states are kept, and foreign ones outdated, before the frontier moves
    /// past them. So whoever was woken by an event reads its consequences here. What is decided on such an answer needs
    /// a compare-and-set or a guard, or must be true of a slightly older world.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn heads(&self, ids: &[AggregateId]) -> Result<Vec<Head>, StoreError> {
        let cache = &self.inner().cache;
        // Before the load, so that what it finds cannot outlive a foreign event that comes in meanwhile.
        let ticket = cache.ticket();
        let (found, missing) = cache.get_many(ids);
        let mut heads: Vec<Head> =
            found.into_iter().map(|(id, sequence, state)| Head { id, sequence, state }).collect();
        if !missing.is_empty() {
            let loaded = self.inner().store.heads(&missing).await?;
            cache.put_many(ticket, loaded.iter().map(|head| (head.id, head.sequence, head.state.clone())));
            heads.extend(loaded);
        }
        Ok(heads)
    }
}
