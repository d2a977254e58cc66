//! A law: whatever units win, lose and interleave, positions are contiguous and heads match their streams.

use crate::support::{Builder, id};
use converge_domain::{AggregateId, Position, Sequence};
use converge_event_store::{MemoryStore, Store};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_interleaving_gives_contiguous_positions(
        batches in prop::collection::vec(
            prop::collection::vec((0_usize..6, -1_i64..2), 1..8),
            1..20,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = MemoryStore::new();
            let ids: Vec<AggregateId> = (0..6).map(|_| id()).collect();
            for writes in batches {
                let heads = store.heads(&ids).await.unwrap();
                let mut batch = Builder::default();
                let mut seen = std::collections::BTreeSet::new();
                for (unit, (at, skew)) in (0..).zip(writes) {
                    if seen.insert(at) {
                        let now = heads.iter().find(|head| head.id == ids[at]).map_or(0, |head| head.sequence.0);
                        // Some writers are behind, some ahead, some right.
                        batch = batch.write(unit, ids[at], now.saturating_add_signed(skew));
                    }
                }
                store.append(&batch.batch).await.unwrap();
            }
            let events = store.read(Position(0), 10_000).await.unwrap();
            let positions: Vec<u64> = events.iter().map(|event| event.position.0).collect();
            assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<u64>>());
            for head in store.heads(&ids).await.unwrap() {
                let stream = store.read_stream(head.id, Sequence(0), 10_000).await.unwrap();
                let sequences: Vec<u64> = stream.iter().map(|event| event.sequence.0).collect();
                assert_eq!(sequences, (1..=head.sequence.0).collect::<Vec<u64>>());
            }
        });
    }
}
