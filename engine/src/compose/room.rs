//! How much composing goes on at once.
//!
//! A fleet of composers answers all at once, when it is applied the first time or after an upgrade. Each output that is checked or
//! applied is in memory to some part, so both have a limit, by children; who waits, waits in order, holding nothing. Nothing that is
//! let in waits for anything that is not: a check and a pass only read and append.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Children of all outputs that are being checked.
const CHECKED_MAX: usize = 50_000;
/// Children of all passes that are being applied.
const APPLIED_MAX: usize = 100_000;
/// What one output counts at least: it is read by pages.
const COUNTED_MIN: u64 = 100;
/// What one output counts at most, since a large one is not held whole; so a few of them never shut out the small.
const COUNTED_MAX: u64 = 25_000;

/// Admits outputs; the permit is held while one is worked on.
pub(crate) struct Room {
    checked: Semaphore,
    applied: Semaphore,
}

impl Default for Room {
    fn default() -> Self {
        Self { checked: Semaphore::new(CHECKED_MAX), applied: Semaphore::new(APPLIED_MAX) }
    }
}

impl Room {
    /// Waits until an output of `children` may be checked.
    pub(super) async fn to_check(&self, children: u64) -> Option<SemaphorePermit<'_>> {
        enter(&self.checked, children).await
    }

    /// Waits until a pass over `children` may be applied.
    pub(super) async fn to_apply(&self, children: u64) -> Option<SemaphorePermit<'_>> {
        enter(&self.applied, children).await
    }
}

/// None would mean that the semaphore was closed, which nobody does.
async fn enter(room: &Semaphore, children: u64) -> Option<SemaphorePermit<'_>> {
    let counted = u32::try_from(children.clamp(COUNTED_MIN, COUNTED_MAX)).unwrap_or(u32::MAX);
    room.acquire_many(counted).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_few_large_outputs_leave_room_for_small_ones_and_those_who_wait_go_in_order() {
        let room = Room::default();
        let large: Vec<_> = (0..3).map(|_| room.to_apply(1_000_000).now_or_never().unwrap()).collect();
        let small: Vec<_> = (0..250).map(|_| room.to_apply(10).now_or_never().unwrap()).collect();
        let mut waits = Box::pin(room.to_apply(1_000_000));
        assert!(waits.as_mut().now_or_never().is_none(), "the room is full");
        let mut behind = Box::pin(room.to_apply(10));
        assert!(behind.as_mut().now_or_never().is_none());
        drop(small);
        assert!(waits.as_mut().now_or_never().is_some());
        drop(large);
        assert!(behind.as_mut().now_or_never().is_some());
    }
}
