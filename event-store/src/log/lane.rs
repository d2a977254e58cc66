//! One lane: takes what has gathered, decides it, commits it, and again.
//!
//! The lane is a task of its own. Callers only hold the receiving end of a channel, and nothing here is ever
//! cancelled half-way: an append that was sent is seen through to a known outcome.

use super::handle::Inner;
use super::queue::{Pending, Queue};
use std::sync::Arc;
use tokio::time::Instant;

pub(super) async fn run(inner: Arc<Inner>, queue: Arc<Queue>) {
    // Groups to be decided again. They go first, so that every round at least the first of them rests on
    // nothing but committed states.
    let mut again: Vec<Pending> = Vec::new();
    loop {
        let mut batch = take_due(&mut again, inner.config.batch_groups_max);
        let solo = batch.first().is_some_and(|pending| pending.solo);
        let open =
            solo || queue.take(&mut batch, inner.config.batch_groups_max, inner.config.batch_bytes_max);
        if batch.is_empty() {
            if !open && again.is_empty() {
                return;
            }
            match again.iter().filter_map(|pending| pending.not_before).min() {
                Some(due) => {
                    // Only waits are raced here, no work.
                    tokio::select! {
                        () = queue.wait() => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => queue.wait().await,
            }
            continue;
        }
        again.extend(Box::pin(inner.process(batch)).await);
    }
}

/// The groups whose pause is over; one alone if it must go alone.
fn take_due(again: &mut Vec<Pending>, groups_max: usize) -> Vec<Pending> {
    let now = Instant::now();
    let is_due = |pending: &Pending| pending.not_before.is_none_or(|at| at <= now);
    if let Some(at) = again.iter().position(|pending| pending.solo && is_due(pending)) {
        return vec![again.remove(at)];
    }
    let (due, later): (Vec<_>, Vec<_>) = std::mem::take(again).into_iter().partition(is_due);
    let mut due = due;
    *again = later;
    if due.len() > groups_max {
        again.extend(due.drain(groups_max..));
    }
    due
}

impl Inner {
    /// One batch from queue to answers; returns the groups to be decided again.
    async fn process(&self, batch: Vec<Pending>) -> Vec<Pending> {
        metrics::histogram!("converge_log_batch_groups").record(batch.len() as f64);
        // Before anything is read, so that nothing older than a foreign event gets into the cache after it.
        let ticket = self.cache.ticket();
        let decided = self.decide(batch, ticket).await;
        let mut again = decided.again;
        let sealed = decided.draft.seal(self.projector.as_ref());
        let _in_flight = (!sealed.groups.is_empty()).then(|| self.tail.in_flight());
        let (lost, unproven) =
            futures::join!(self.commit(sealed, ticket), self.answer_nothing(decided.nothing));
        again.extend(lost);
        again.extend(unproven);
        again
    }
}
