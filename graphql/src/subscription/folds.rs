//! Resources as of each event of a watch.
//!
//! Whether a resource enters, stays in or leaves a filter is a question about its state right before and
//! right after one event. What this process appended itself comes with the state before; a watch that replays the past, or hears
//! of another process, folds along. The states of the resources seen last are kept,
//! for all watches together; any other is folded again from its stream, which gives the same state. A watch that
//! is far behind replaces what a live one kept and the other way round: that costs each of them a read a batch, and
//! nothing else, since a kept state is used only for the event that follows it.

use crate::error::ApiError;
use crate::limits::WATCHED_STATES_MAX;
use converge_domain::resource::ResourceState;
use converge_domain::{AggregateId, AnyEvent, ResourceId, Sequence};
use converge_event_store::{Store, StoredEvent};
use cqrs_es::Aggregate;
use lru::LruCache;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Events read at a time when a stream is folded from its start.
const STREAM_PAGE: u32 = 500;
/// Events read of each stream when many are folded at once; longer ones go on by pages.
const BEGINNING: u32 = 32;

pub struct Folds {
    store: Arc<dyn Store>,
    states: LruCache<ResourceId, Arc<ResourceState>>,
}

/// A resource around one event.
#[derive(Clone)]
pub struct Step {
    /// None: the event created it.
    pub before: Option<Arc<ResourceState>>,
    pub after: Arc<ResourceState>,
}

impl Folds {
    pub fn new(store: Arc<dyn Store>) -> Self {
        let capacity = NonZeroUsize::new(WATCHED_STATES_MAX).unwrap_or(NonZeroUsize::MIN);
        Self { store, states: LruCache::new(capacity) }
    }

    /// Folds past `events`, which are of resources and in the order of the log. One step each.
    ///
    /// # Errors
    /// When a stream cannot be read.
    pub async fn steps(&mut self, events: &[&StoredEvent]) -> Result<Vec<Step>, ApiError> {
        let mut states = self.states_before(events).await?;
        let mut steps = Vec::with_capacity(events.len());
        for event in events {
            let AnyEvent::Resource(fact) = &event.event else {
                return Err(ApiError::unavailable(format!("event {} is not of a resource", event.position)));
            };
            let before = states.remove(&event.aggregate_id).unwrap_or_default();
            let mut after = Arc::clone(&before);
            Arc::make_mut(&mut after).apply(fact.clone());
            states.insert(event.aggregate_id, Arc::clone(&after));
            let id = ResourceId(event.aggregate_id.0);
            if after.deleted {
                self.states.pop(&id);
            } else {
                self.states.put(id, Arc::clone(&after));
            }
            steps.push(Step { before: before.identity.is_some().then_some(before), after });
        }
        Ok(steps)
    }

    /// The state of every resource right before its first event among `events`.
    async fn states_before(
        &mut self,
        events: &[&StoredEvent],
    ) -> Result<HashMap<AggregateId, Arc<ResourceState>>, ApiError> {
        let mut states = HashMap::new();
        let mut unknown = Vec::new();
        for event in events {
            let (id, previous) = (event.aggregate_id, event.sequence.0.saturating_sub(1));
            if states.contains_key(&id) {
                continue;
            }
            let known = match &event.before.0 {
                Some(before) => Some(before),
                None => self.states.get(&ResourceId(id.0)).filter(|state| state.sequence == previous),
            };
            if known.is_none() && previous > 0 {
                unknown.push((id, Sequence(previous)));
            }
            states.insert(id, known.cloned().unwrap_or_default());
        }
        let Some(first) = events.first().filter(|_| !unknown.is_empty()) else { return Ok(states) };
        let beginnings = self.store.read_beginnings(&unknown, first.position, BEGINNING).await?;
        for stored in beginnings {
            if let (Some(state), AnyEvent::Resource(fact)) =
                (states.get_mut(&stored.aggregate_id), stored.event)
            {
                Arc::make_mut(state).apply(fact);
            }
        }
        for (id, Sequence(end)) in unknown {
            if let Some(state) = states.get_mut(&id) {
                self.fold_to(id, Arc::make_mut(state), end).await?;
            }
        }
        Ok(states)
    }

    /// Folds the stream on, to its event `sequence`.
    async fn fold_to(
        &self,
        id: AggregateId,
        state: &mut ResourceState,
        sequence: u64,
    ) -> Result<(), ApiError> {
        while state.sequence < sequence {
            let left = u32::try_from(sequence - state.sequence).unwrap_or(u32::MAX).min(STREAM_PAGE);
            let page = self.store.read_stream(id, Sequence(state.sequence), left).await?;
            if page.is_empty() {
                return Err(ApiError::unavailable(format!(
                    "the stream of resource {id} ends at {} but the log holds its event {sequence}",
                    state.sequence
                )));
            }
            for stored in page {
                if let AnyEvent::Resource(fact) = stored.event {
                    state.apply(fact);
                }
            }
        }
        Ok(())
    }
}
