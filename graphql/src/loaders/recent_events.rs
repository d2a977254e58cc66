//! The last events of many resources.

use crate::error::ApiError;
use async_graphql::dataloader::Loader;
use converge_domain::{AggregateId, Sequence};
use converge_event_store::{Store, StoredEvent};
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::sync::Arc;

/// Streams read at once. Each is its own read, since a stream's end is known by its own sequence; the
/// bound keeps one list with events from taking every connection.
const READS_AT_ONCE: usize = 8;

/// The last `limit` events of an aggregate up to `sequence`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecentEventsKey {
    pub id: AggregateId,
    pub sequence: u64,
    pub limit: u32,
}

pub struct RecentEvents {
    pub(super) store: Arc<dyn Store>,
}

impl Loader<RecentEventsKey> for RecentEvents {
    type Value = Vec<StoredEvent>;
    type Error = ApiError;

    async fn load(
        &self,
        keys: &[RecentEventsKey],
    ) -> Result<HashMap<RecentEventsKey, Self::Value>, ApiError> {
        tracing::trace!(keys = keys.len(), "loading events");
        futures::stream::iter(keys.to_vec())
            .map(|key| async move {
                let after = Sequence(key.sequence.saturating_sub(u64::from(key.limit)));
                let events = self.store.read_stream(key.id, after, key.limit).await?;
                Ok((key, events))
            })
            .buffer_unordered(READS_AT_ONCE)
            .try_collect()
            .await
    }
}
