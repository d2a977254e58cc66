//! Resources as of each event of a watch.
//!
//! Whether a resource enters, stays in or leaves a filter is a question about its state right before and
//! right after one event, so a watch that replays the past folds along. States are kept for the resources
//! seen last; for any other the stream up to the event is read again, which gives the same state.

use crate::error::ApiError;
use crate::limits::SUBSCRIPTION_STATES_MAX;
use converge_domain::resource::ResourceState;
use converge_domain::{AnyEvent, ResourceId, Sequence};
use converge_event_store::{Store, StoredEvent};
use cqrs_es::Aggregate;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Events read at a time when a stream is folded from its start.
const STREAM_PAGE: u32 = 500;

pub struct Folds {
    store: Arc<dyn Store>,
    states: LruCache<ResourceId, Arc<ResourceState>>,
}

/// A resource around one event.
pub struct Step {
    /// None: the event created it.
    pub before: Option<Arc<ResourceState>>,
    pub after: Arc<ResourceState>,
}

impl Folds {
    pub fn new(store: Arc<dyn Store>) -> Self {
        let capacity = NonZeroUsize::new(SUBSCRIPTION_STATES_MAX).unwrap_or(NonZeroUsize::MIN);
        Self { store, states: LruCache::new(capacity) }
    }

    /// Folds past `event`. None for events of other aggregates.
    ///
    /// # Errors
    /// When a stream cannot be read.
    pub async fn step(&mut self, event: &StoredEvent) -> Result<Option<Step>, ApiError> {
        let AnyEvent::Resource(fact) = &event.event else { return Ok(None) };
        let id = ResourceId(event.aggregate_id.0);
        let previous = event.sequence.0.saturating_sub(1);
        let before = match self.states.get(&id) {
            Some(state) if state.sequence == previous => Arc::clone(state),
            _ => Arc::new(self.fold_to(event, previous).await?),
        };
        let mut after = Arc::clone(&before);
        Arc::make_mut(&mut after).apply(fact.clone());
        if after.deleted {
            self.states.pop(&id);
        } else {
            self.states.put(id, Arc::clone(&after));
        }
        Ok(Some(Step { before: before.identity.is_some().then_some(before), after }))
    }

    /// The state after the first `sequence` events of the stream that `event` belongs to.
    async fn fold_to(&self, event: &StoredEvent, sequence: u64) -> Result<ResourceState, ApiError> {
        let mut state = ResourceState::default();
        while state.sequence < sequence {
            let left = u32::try_from(sequence - state.sequence).unwrap_or(u32::MAX).min(STREAM_PAGE);
            let page = self.store.read_stream(event.aggregate_id, Sequence(state.sequence), left).await?;
            if page.is_empty() {
                return Err(ApiError::unavailable(format!(
                    "the stream of resource {} ends at {} but the log holds its event {sequence}",
                    event.aggregate_id, state.sequence
                )));
            }
            for stored in page {
                if let AnyEvent::Resource(fact) = stored.event {
                    state.apply(fact);
                }
            }
        }
        Ok(state)
    }
}
