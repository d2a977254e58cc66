//! Aggregates kept in memory between batches.
//!
//! An entry is never trusted, only tried: whatever is appended from it is compared with the head again. But the
//! answer "nothing to do" relies on more: *when the process has seen the whole log, every entry is current*. Foreign
//! events evict what they outdate, which is not enough by itself: a load or an append that began before such an
//! event could put an older state back after it. So writers take a ticket before they begin, and an entry is
//! accepted only if nothing foreign touched its slot since.

use super::size::state_bytes;
use converge_domain::{AggregateId, AnyState, Sequence};
use lru::LruCache;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots for the times of foreign events; ids share them by hash.
const SLOTS: usize = 1024;

/// A moment in the cache's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

struct Entry {
    sequence: Sequence,
    state: AnyState,
    bytes: usize,
}

struct Inner {
    entries: LruCache<AggregateId, Entry>,
    bytes: usize,
    now: u64,
    /// Per slot: when a foreign event last touched it.
    touched: Vec<u64>,
}

impl Inner {
    fn put(&mut self, ticket: Ticket, id: AggregateId, entry: Entry) {
        if self.entries.peek(&id).is_some_and(|kept| kept.sequence >= entry.sequence) {
            return;
        }
        let old = if self.touched[slot(id)] > ticket.0 {
            // It may itself be outdated, but what is kept certainly is.
            self.entries.pop(&id)
        } else {
            self.bytes += entry.bytes;
            self.entries.put(id, entry)
        };
        self.bytes -= old.map_or(0, |old| old.bytes);
    }

    fn shrink(&mut self, entries_max: usize, bytes_max: usize) {
        while self.entries.len() > entries_max || self.bytes > bytes_max {
            let Some((_, old)) = self.entries.pop_lru() else { break };
            self.bytes -= old.bytes;
        }
    }
}

/// A bounded, shared cache.
pub(crate) struct Cache {
    inner: Mutex<Inner>,
    entries_max: usize,
    bytes_max: usize,
}

impl Cache {
    pub(super) fn new(entries_max: usize, bytes_max: usize) -> Self {
        let inner = Inner { entries: LruCache::unbounded(), bytes: 0, now: 0, touched: vec![0; SLOTS] };
        Self { inner: Mutex::new(inner), entries_max, bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be taken before the load or append whose result is put later.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket(self.lock().now)
    }

    pub(super) fn get(&self, id: AggregateId) -> Option<(Sequence, AnyState)> {
        self.lock().entries.get(&id).map(|entry| (entry.sequence, entry.state.clone()))
    }

    /// Those of `ids` that are kept, and the ids of the others.
    pub(super) fn get_many(
        &self,
        ids: &[AggregateId],
    ) -> (Vec<(AggregateId, Sequence, AnyState)>, Vec<AggregateId>) {
        let mut inner = self.lock();
        let (mut found, mut missing) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            match inner.entries.get(id) {
                Some(entry) => found.push((*id, entry.sequence, entry.state.clone())),
                None => missing.push(*id),
            }
        }
        (found, missing)
    }

    /// Keeps `state`, unless a newer one is there or a foreign event came in since `ticket`. Either way nothing
    /// older than `state` stays: whoever puts a state has seen that it exists.
    pub(super) fn put(&self, ticket: Ticket, id: AggregateId, sequence: Sequence, state: AnyState) {
        let bytes = state_bytes(&state);
        let mut inner = self.lock();
        inner.put(ticket, id, Entry { sequence, state, bytes });
        inner.shrink(self.entries_max, self.bytes_max);
    }

    /// [`Cache::put`] for many.
    pub(super) fn put_many(
        &self,
        ticket: Ticket,
        states: impl IntoIterator<Item = (AggregateId, Sequence, AnyState)>,
    ) {
        let entries: Vec<_> = states
            .into_iter()
            .map(|(id, sequence, state)| (id, Entry { sequence, bytes: state_bytes(&state), state }))
            .collect();
        let mut inner = self.lock();
        for (id, entry) in entries {
            inner.put(ticket, id, entry);
        }
        inner.shrink(self.entries_max, self.bytes_max);
    }

    /// Drops entries that turned out stale, or whose aggregate is gone.
    pub(super) fn evict(&self, ids: impl IntoIterator<Item = AggregateId>) {
        let mut inner = self.lock();
        for id in ids {
            if let Some(old) = inner.entries.pop(&id) {
                inner.bytes -= old.bytes;
            }
        }
    }

    /// An event was read from the log that this process may not have written: an older entry goes, and so does
    /// the right of anyone who began before to put one.
    pub(crate) fn outdate(&self, events: impl IntoIterator<Item = (AggregateId, Sequence)>) {
        let mut inner = self.lock();
        inner.now += 1;
        let now = inner.now;
        for (id, sequence) in events {
            if inner.entries.peek(&id).is_some_and(|entry| entry.sequence >= sequence) {
                continue;
            }
            inner.touched[slot(id)] = now;
            if let Some(old) = inner.entries.pop(&id) {
                inner.bytes -= old.bytes;
            }
        }
    }

    /// Forgets everything: the database is not the one that the entries came from.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        inner.now += 1;
        let now = inner.now;
        inner.touched.fill(now);
        inner.entries.clear();
        inner.bytes = 0;
    }
}

/// Random bits of the id: version 7 ids share their leading time bits.
fn slot(id: AggregateId) -> usize {
    let bytes = id.0.as_bytes();
    (usize::from(bytes[15]) | usize::from(bytes[14]) << 8) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use converge_domain::AggregateType;
    use uuid::Uuid;

    fn id(n: u128) -> AggregateId {
        AggregateId(Uuid::from_u128(n))
    }

    fn state() -> AnyState {
        AnyState::empty(AggregateType::Kind)
    }

    #[test]
    fn a_load_that_began_before_a_foreign_event_is_not_kept() {
        let cache = Cache::new(10, 1 << 20);
        let ticket = cache.ticket();
        cache.outdate([(id(1), Sequence(6))]);
        cache.put(ticket, id(1), Sequence(5), state());
        cache.put(ticket, id(2), Sequence(5), state());
        assert!(cache.get(id(1)).is_none());
        assert!(cache.get(id(2)).is_some());
    }

    #[test]
    fn an_older_state_never_replaces_a_newer_one() {
        let cache = Cache::new(10, 1 << 20);
        cache.put(cache.ticket(), id(1), Sequence(7), state());
        cache.put(cache.ticket(), id(1), Sequence(6), state());
        assert_eq!(cache.get(id(1)).map(|(sequence, _)| sequence), Some(Sequence(7)));
    }

    #[test]
    fn a_newer_state_that_cannot_be_kept_still_drives_the_older_one_out() {
        let cache = Cache::new(10, 1 << 20);
        cache.put(cache.ticket(), id(1), Sequence(5), state());
        let ticket = cache.ticket();
        // Another aggregate of the same slot.
        let neighbour = id(1 | 1 << 64);
        cache.outdate([(neighbour, Sequence(3))]);
        cache.put(ticket, id(1), Sequence(6), state());
        assert!(cache.get(id(1)).is_none());
    }

    #[test]
    fn the_cache_stays_within_its_bounds() {
        let cache = Cache::new(2, 1 << 20);
        for n in 0..5 {
            cache.put(cache.ticket(), id(n), Sequence(1), state());
        }
        assert!(cache.get(id(0)).is_none());
        assert!(cache.get(id(4)).is_some());
        let narrow = Cache::new(100, 10_000);
        narrow.put(narrow.ticket(), id(1), Sequence(1), state());
        narrow.put(narrow.ticket(), id(2), Sequence(1), state());
        assert!(narrow.get(id(1)).is_none());
    }
}
