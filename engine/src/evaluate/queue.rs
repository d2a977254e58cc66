//! Wakes, coalesced: many wakes of one resource are one evaluation.

use converge_domain::ResourceId;
use lru::LruCache;
use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Owners whose open witness is remembered.
const WITNESSES_MAX: NonZeroUsize = NonZeroUsize::new(100_000).expect("not zero");

/// What to do about a resource; wakes of one resource add up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Touch(u8);

impl Touch {
    /// Evaluate the resource itself.
    pub const SELF: Self = Self(1);
    /// Tell its dependents.
    pub const DEPENDENTS: Self = Self(2);
    /// Tell its owner.
    const OWNER: Self = Self(4);
    /// Mark what it owns and what depends on it as Deleting too.
    const CASCADE: Self = Self(8);
    /// Evaluate it, then tell dependents and owner.
    pub const AROUND: Self = Self(1 | 2 | 4);
    /// Its deletion was requested.
    pub const DELETION: Self = Self(1 | 2 | 4 | 8);
    /// Somebody depends on it who was not there when its deletion was requested. It tells nobody: they are the ones
    /// who woke it.
    pub const CASCADE_AGAIN: Self = Self(1 | 8);
    /// A cascade may take it now that could not before: it was set aside, or protected. Else as [`Self::AROUND`].
    pub const FREED: Self = Self(1 | 2 | 4 | 16);
    /// Do whatever a lost wake could have asked for.
    pub const RECOVERY: Self = Self(1 | 2 | 4 | 8);

    pub const fn tells_dependents(self) -> bool {
        self.0 & Self::DEPENDENTS.0 != 0
    }

    pub const fn tells_owner(self) -> bool {
        self.0 & Self::OWNER.0 != 0
    }

    pub const fn frees(self) -> bool {
        self.0 & 16 != 0
    }

    pub const fn cascades(self) -> bool {
        self.0 & Self::CASCADE.0 != 0
    }
}

/// The pending wakes.
pub(super) struct WakeQueue {
    inner: Mutex<Inner>,
    pushed: Notify,
    taken: Notify,
}

struct Inner {
    pending: HashMap<ResourceId, Touch>,
    order: VecDeque<ResourceId>,
    running: HashSet<ResourceId>,
    /// For an owner, a child last read as open: while that child has not moved, no sibling's settling can
    /// settle the owner, and it need not look.
    witnesses: LruCache<ResourceId, ResourceId>,
}

impl Default for WakeQueue {
    fn default() -> Self {
        Self {
            inner: Mutex::new(Inner {
                pending: HashMap::new(),
                order: VecDeque::new(),
                running: HashSet::new(),
                witnesses: LruCache::new(WITNESSES_MAX),
            }),
            pushed: Notify::new(),
            taken: Notify::new(),
        }
    }
}

impl WakeQueue {
    /// Adds wakes.
    pub fn push(&self, touches: impl IntoIterator<Item = (ResourceId, Touch)>) {
        let mut inner = self.lock();
        for (id, touch) in touches {
            inner.add(id, touch);
        }
        drop(inner);
        self.pushed.notify_one();
    }

    /// `child` moved: wakes its owner unless a sibling is known to hold the owner open.
    ///
    /// Why skipping loses nothing: the witness was open in a read. When it moves, its own event comes through
    /// here as `child` and wakes the owner. Had it moved between that read and the note of it, the owner was in
    /// the running batch then, and that wake, which found no note yet, is still pending.
    pub fn push_owner(&self, owner: ResourceId, child: ResourceId) {
        let mut inner = self.lock();
        match inner.witnesses.get(&owner) {
            Some(witness) if *witness != child => return,
            _ => {}
        }
        inner.witnesses.pop(&owner);
        inner.add(owner, Touch::SELF);
        drop(inner);
        self.pushed.notify_one();
    }

    /// Remembers what was read of an owner's children.
    pub fn note_witness(&self, owner: ResourceId, witness: Option<ResourceId>) {
        let mut inner = self.lock();
        // A wake is pending: the read is older than what it reports, so it proves nothing.
        if inner.pending.contains_key(&owner) {
            return;
        }
        match witness {
            Some(witness) => {
                inner.witnesses.put(owner, witness);
            }
            None => {
                inner.witnesses.pop(&owner);
            }
        }
    }

    /// Takes up to `most` resources that no batch is running for; waits until there are some.
    pub async fn take(&self, most: usize) -> Vec<(ResourceId, Touch)> {
        loop {
            let pushed = self.pushed.notified();
            let batch = self.lock().take(most);
            if !batch.is_empty() {
                self.taken.notify_waiters();
                return batch;
            }
            pushed.await;
        }
    }

    /// The batch of `ids` has ended.
    pub fn done(&self, ids: &[ResourceId]) {
        let mut inner = self.lock();
        for id in ids {
            inner.running.remove(id);
            if inner.pending.contains_key(id) {
                inner.order.push_back(*id);
            }
        }
        drop(inner);
        self.pushed.notify_one();
    }

    /// Waits until fewer than `most` wakes are pending.
    pub async fn drained_below(&self, most: usize) {
        loop {
            let taken = self.taken.notified();
            if self.lock().pending.len() < most {
                return;
            }
            taken.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, id: ResourceId, touch: Touch) {
        let fresh = !self.pending.contains_key(&id);
        let merged = self.pending.entry(id).or_default();
        merged.0 |= touch.0;
        // One that runs now goes back into the order when its batch is done.
        if fresh && !self.running.contains(&id) {
            self.order.push_back(id);
        }
    }

    fn take(&mut self, most: usize) -> Vec<(ResourceId, Touch)> {
        let mut batch = Vec::new();
        while batch.len() < most {
            let Some(id) = self.order.pop_front() else { break };
            if self.running.contains(&id) {
                continue;
            }
            if let Some(touch) = self.pending.remove(&id) {
                self.running.insert(id);
                batch.push((id, touch));
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn id(n: u128) -> ResourceId {
        ResourceId(Uuid::from_u128(n))
    }

    #[tokio::test]
    async fn many_wakes_of_one_resource_are_one_evaluation() {
        let queue = WakeQueue::default();
        queue.push((0..10_000).map(|_| (id(1), Touch::SELF)));
        queue.push([(id(1), Touch::AROUND)]);
        assert_eq!(queue.take(10).await, vec![(id(1), Touch::AROUND)]);
        assert!(queue.lock().take(10).is_empty());
    }

    #[tokio::test]
    async fn a_wake_during_a_batch_runs_after_it() {
        let queue = WakeQueue::default();
        queue.push([(id(1), Touch::SELF)]);
        queue.take(1).await;
        queue.push([(id(1), Touch::SELF)]);
        assert!(queue.lock().take(1).is_empty());
        queue.done(&[id(1)]);
        assert_eq!(queue.take(1).await, vec![(id(1), Touch::SELF)]);
    }

    #[tokio::test]
    async fn an_owner_held_open_by_a_witness_is_not_woken_by_its_siblings() {
        let queue = WakeQueue::default();
        let (owner, witness, sibling) = (id(1), id(2), id(3));
        queue.note_witness(owner, Some(witness));
        queue.push_owner(owner, sibling);
        assert!(queue.lock().take(1).is_empty());
        queue.push_owner(owner, witness);
        assert_eq!(queue.take(1).await, vec![(owner, Touch::SELF)]);
    }

    #[tokio::test]
    async fn a_witness_read_before_a_pending_wake_is_not_trusted() {
        let queue = WakeQueue::default();
        let (owner, witness, sibling) = (id(1), id(2), id(3));
        queue.push([(owner, Touch::SELF)]);
        queue.take(1).await;
        queue.push_owner(owner, witness);
        queue.note_witness(owner, Some(witness));
        queue.push_owner(owner, sibling);
        queue.done(&[owner]);
        assert_eq!(queue.take(1).await, vec![(owner, Touch::SELF)]);
    }
}
