//! Recent events in order, and those that wait for a gap before them to close.

use crate::store::StoredEvent;
use converge_domain::Position;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub(super) struct Ring {
    /// The last contiguous position.
    frontier: u64,
    /// Batches up to the frontier, contiguous.
    recent: VecDeque<Arc<Vec<StoredEvent>>>,
    recent_events: usize,
    events_max: usize,
    /// Batches behind a gap, by their first position. Bounded by what lanes have in flight.
    waiting: BTreeMap<u64, Arc<Vec<StoredEvent>>>,
}

fn first(events: &[StoredEvent]) -> u64 {
    events.first().map_or(0, |event| event.position.0)
}

fn last(events: &[StoredEvent]) -> u64 {
    events.last().map_or(0, |event| event.position.0)
}

impl Ring {
    pub(super) const fn new(frontier: Position, events_max: usize) -> Self {
        Self {
            frontier: frontier.0,
            recent: VecDeque::new(),
            recent_events: 0,
            events_max,
            waiting: BTreeMap::new(),
        }
    }

    pub(super) const fn frontier(&self) -> Position {
        Position(self.frontier)
    }

    pub(super) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The event at the frontier, if it is kept.
    pub(super) fn last_event(&self) -> Option<&StoredEvent> {
        self.recent.back().and_then(|events| events.last())
    }

    /// Takes a contiguous run of events in and moves the frontier as far as it goes. Events at or before the
    /// frontier are known already (a gap was read from the store while a lane's answer was on its way) and are cut.
    pub(super) fn add(&mut self, events: Arc<Vec<StoredEvent>>) {
        self.waiting
            .entry(first(&events))
            .and_modify(|there| {
                if last(&events) > last(there) {
                    *there = events.clone();
                }
            })
            .or_insert(events);
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() > self.frontier + 1 {
                break;
            }
            let events = entry.remove();
            let end = last(&events);
            if end <= self.frontier {
                continue;
            }
            let events = if first(&events) == self.frontier + 1 {
                events
            } else {
                let known = events.partition_point(|event| event.position.0 <= self.frontier);
                Arc::new(events[known..].to_vec())
            };
            self.recent_events += events.len();
            self.recent.push_back(events);
            self.frontier = end;
        }
        // The newest batch stays, whatever its size.
        while self.recent_events > self.events_max && self.recent.len() > 1 {
            if let Some(old) = self.recent.pop_front() {
                self.recent_events -= old.len();
            }
        }
    }

    /// The run of events right after `after`; None if they are not kept any more.
    pub(super) fn after(&self, after: Position) -> Option<Arc<Vec<StoredEvent>>> {
        let next = after.0 + 1;
        let at = self.recent.partition_point(|events| last(events) < next);
        let events = self.recent.get(at)?;
        match first(events) {
            start if start == next => Some(events.clone()),
            start if start < next => {
                let known = events.partition_point(|event| event.position.0 < next);
                Some(Arc::new(events[known..].to_vec()))
            }
            _ => None,
        }
    }

    /// Starts over at the end of another history.
    pub(super) fn reset(&mut self, frontier: Position) {
        *self = Self::new(frontier, self.events_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use converge_domain::provider_config::ProviderConfigEvent;
    use converge_domain::{AggregateId, AggregateType, AnyEvent, Sequence, Timestamp};
    use proptest::prelude::*;

    fn run(first: u64, last: u64) -> Arc<Vec<StoredEvent>> {
        let event = |position| StoredEvent {
            position: Position(position),
            aggregate_type: AggregateType::ProviderConfig,
            aggregate_id: AggregateId(uuid::Uuid::nil()),
            sequence: Sequence(position),
            event: AnyEvent::ProviderConfig(ProviderConfigEvent::Deleted { at: Timestamp(0) }),
            metadata: Arc::default(),
            committed_at: Timestamp(0),
            before: crate::store::Before::default(),
        };
        Arc::new((first..=last).map(event).collect())
    }

    fn drain(ring: &Ring, after: &mut u64) -> Vec<u64> {
        let mut seen = Vec::new();
        while let Some(events) = ring.after(Position(*after)) {
            seen.extend(events.iter().map(|event| event.position.0));
            *after = seen.last().copied().unwrap_or(*after);
        }
        seen
    }

    proptest! {
        /// Batches arrive in any order, and pieces of them once more from the store.
        #[test]
        fn any_order_of_arrival_comes_out_contiguous(
            sizes in prop::collection::vec(1_u64..5, 1..12),
            order in prop::collection::vec(any::<prop::sample::Index>(), 12),
            overlaps in prop::collection::vec((0_u64..40, 0_u64..6), 0..4),
        ) {
            let mut next = 1;
            let mut batches: Vec<_> = sizes
                .iter()
                .map(|size| {
                    next += size;
                    (next - size, next - 1)
                })
                .collect();
            let end = next - 1;
            for (from, length) in overlaps {
                let first = 1 + from % end;
                batches.push((first, (first + length).min(end)));
            }
            let mut ring = Ring::new(Position(0), 1000);
            let (mut after, mut seen) = (0, Vec::new());
            for index in order.iter().cycle() {
                if batches.is_empty() {
                    break;
                }
                let (first, last) = batches.remove(index.index(batches.len()));
                ring.add(run(first, last));
                seen.extend(drain(&ring, &mut after));
            }
            prop_assert_eq!(seen, (1..=end).collect::<Vec<u64>>());
            prop_assert_eq!(ring.frontier(), Position(end));
        }
    }

    #[test]
    fn old_events_are_let_go_and_the_frontier_stays() {
        let mut ring = Ring::new(Position(0), 4);
        for batch in 0..5 {
            ring.add(run(batch * 2 + 1, batch * 2 + 2));
        }
        assert_eq!(ring.frontier(), Position(10));
        assert!(ring.after(Position(2)).is_none());
        assert_eq!(ring.after(Position(7)).map(|events| events.len()), Some(1));
    }
}
