//! The heads that an engine would have written beside a story, in a store in memory.

#![allow(dead_code, reason = "each test binary uses its part")]

use super::story::Story;
use converge_domain::{Address, AggregateId, AnyState, BatchId, Sequence};
use converge_event_store::{Batch, HeadChange, InlineProjector, MemoryStore, NewEvent, Store};
use converge_projections::inline::StateProjector;
use std::collections::HashMap;
use std::sync::Arc;

/// A store that everything in `story` was appended to.
pub async fn heads(story: &Story) -> Arc<dyn Store> {
    let store = MemoryStore::new();
    let mut states: HashMap<AggregateId, AnyState> = HashMap::new();
    for event in &story.events {
        let address = Address { aggregate_type: event.aggregate_type, id: event.aggregate_id };
        let empty = || AnyState::empty(event.aggregate_type);
        let before = states.get(&event.aggregate_id).cloned().unwrap_or_else(empty);
        let mut after = before.clone();
        after.apply(&event.event);
        let (head, rows) = StateProjector.project(address, &before, &after);
        let batch = Batch {
            batch_id: BatchId(uuid::Uuid::now_v7()),
            events: vec![NewEvent {
                unit: 0,
                aggregate_type: event.aggregate_type,
                aggregate_id: event.aggregate_id,
                sequence: event.sequence,
                event: event.event.clone(),
                metadata: Arc::clone(&event.metadata),
            }],
            heads: vec![HeadChange {
                unit: 0,
                aggregate_type: event.aggregate_type,
                expected: Sequence(event.sequence.0 - 1),
                sequence: event.sequence,
                head,
                rows,
            }],
            guards: Vec::new(),
            commands: Vec::new(),
        };
        let appended = store.append(&batch).await.unwrap();
        assert_eq!((appended.first, appended.conflicts), (event.position, Vec::new()));
        states.insert(event.aggregate_id, after);
    }
    Arc::new(store)
}
