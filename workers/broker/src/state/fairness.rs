//! Who gets the next free slot.
//!
//! Two rules, each against one way to starve. First, a free slot goes to the kind with due work that fills the
//! fewest slots of that worker, ties to the one served least recently: a hot kind cannot crowd out a cool
//! one, and a slow kind, which holds what it has for long, gets no more until the others have as many. Second, where a
//! worker has at least twice as many slots as kinds, one slot is kept for each kind that runs nothing: slow
//! tasks cannot fill a worker so that a kind which wakes a moment later waits for one of them to end.

use super::{State, WorkerId, worker::Worker};
use converge_domain::KindRef;

/// Slots of `worker` that `kind` may still take.
pub(super) fn allowance(worker: &Worker, kind: &KindRef) -> usize {
    let kinds = worker.ready().count();
    if worker.slots < 2 * kinds {
        return worker.free();
    }
    let kept = worker.ready().filter(|other| *other != kind && worker.in_use_by(other) == 0).count();
    worker.free().saturating_sub(kept)
}

impl State {
    /// The worker with the most room for `kind`, on which no claim for it is in flight.
    fn roomiest(&self, kind: &KindRef, planned: impl Fn(WorkerId) -> usize) -> Option<WorkerId> {
        self.workers
            .iter()
            .filter(|(_, worker)| worker.takes_work() && worker.is_ready_for(kind))
            .filter(|(id, worker)| {
                !worker.claiming.contains(kind) && planned(**id) < self.config.claim_batch_max
            })
            .filter(|(_, worker)| allowance(worker, kind) > 0)
            .max_by_key(|(id, worker)| (worker.free(), std::cmp::Reverse(**id)))
            .map(|(id, _)| *id)
    }

    /// The next slot's kind, as an index into `hungry`, and its worker; None when nothing more can be placed.
    pub(super) fn next_placement(
        &self,
        hungry: &[KindRef],
        planned: impl Fn(WorkerId, usize) -> usize,
    ) -> Option<(usize, WorkerId)> {
        let places = hungry.iter().enumerate().filter_map(|(index, kind)| {
            let id = self.roomiest(kind, |id| planned(id, index))?;
            let used = self.workers.get(&id)?.in_use_by(kind);
            let served_at = self.demand.get(kind).map_or(0, |demand| demand.served_at);
            Some(((used, served_at), (index, id)))
        });
        places.min_by_key(|(order, _)| *order).map(|(_, place)| place)
    }
}
