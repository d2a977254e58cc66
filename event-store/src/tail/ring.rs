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
