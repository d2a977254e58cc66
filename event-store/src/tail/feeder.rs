//! The task that reads what our own lanes did not publish.

use super::{Shared, is_set, reached};
use crate::store::{LogHead, StoreError};
use converge_domain::Position;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Events read at once.
const PAGE: u32 = 1000;
/// Notifications within this time cause one look.
const COALESCE: Duration = Duration::from_millis(5);
/// How long a gap may be closed by our own lanes before it is read: their events are on the way, and reading them
/// would only double the work.
const OWN_LANES: Duration = Duration::from_millis(40);
/// Pause after a failed look or a failed listener.
const PAUSE: Duration = Duration::from_millis(500);

/// Turns notifications of the store into looks. Its errors only mean that the poll has to do.
pub(super) async fn listen(shared: Arc<Shared>) {
    let mut stopped = shared.stopped.subscribe();
    loop {
        // Dropping the wait for a notification loses nothing when the log stops.
        let heard = tokio::select! {
            heard = shared.store.appended() => heard,
            () = is_set(&mut stopped) => return,
        };
        if let Err(error) = heard {
            tracing::debug!(%error, "not listening for appends; polling goes on");
            shared.suspect.store(true, Ordering::SeqCst);
            tokio::time::sleep(PAUSE).await;
        }
        shared.look.notify_one();
    }
}

/// Looks at the log's end when told to, and every poll interval.
pub(super) async fn feed(shared: Arc<Shared>) {
    let mut stopped = shared.stopped.subscribe();
    loop {
        tokio::select! {
            () = shared.look.notified() => tokio::time::sleep(COALESCE).await,
            () = tokio::time::sleep(shared.poll_interval) => {}
            () = is_set(&mut stopped) => return,
        }
        if let Err(error) = shared.catch_up().await {
            tracing::warn!(%error, "the log's end could not be read; trying again");
            shared.suspect.store(true, Ordering::SeqCst);
            tokio::time::sleep(PAUSE).await;
            shared.look.notify_one();
        }
    }
}

impl Shared {
    async fn catch_up(&self) -> Result<(), StoreError> {
        let end = self.look_at_end().await?;
        let mut head = self.head.subscribe();
        if *head.borrow() >= end {
            return Ok(());
        }
        if self.in_flight.load(Ordering::SeqCst) > 0
            && let Ok(Ok(())) = tokio::time::timeout(OWN_LANES, reached(&mut head, end)).await
        {
            return Ok(());
        }
        loop {
            let from = self.ring().frontier();
            if from >= end {
                return Ok(());
            }
            let events = self.store.read(from, PAGE).await?;
            let Some(first) = events.first() else { return Ok(()) };
            if first.position != from.next() {
                return Err(StoreError::Corrupt(format!("position {} is missing", from.next())));
            }
            // Before the frontier moves: whoever sees the new frontier finds no older entry.
            self.cache.outdate(events.iter().map(|event| (event.aggregate_id, event.sequence)));
            self.advance(Arc::new(events));
        }
    }

    /// Reads where the log ends, and whether it is still the log that was read before.
    ///
    /// A log that ends before our frontier lost commits. One that is longer is compared at the last end we read: its
    /// chain hash there stands for everything before. That costs a query, so it is done only after an outage.
    pub(super) async fn look_at_end(&self) -> Result<Position, StoreError> {
        let seen = self.ring().frontier();
        let suspect = self.suspect.swap(false, Ordering::SeqCst);
        let result = self.compare(seen, suspect).await;
        if result.is_err() && suspect {
            self.suspect.store(true, Ordering::SeqCst);
        }
        result
    }

    async fn compare(&self, seen: Position, suspect: bool) -> Result<Position, StoreError> {
        // Read before the end: an anchor that another look moves meanwhile would make this end look too short.
        let anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let end = self.store.log_head().await?;
        let changed = end.position < seen
            || end.position < anchor.position
            || (end.position == anchor.position && end.chain != anchor.chain)
            || (suspect
                && anchor.position.0 > 0
                && self.store.chain_at(anchor.position).await?.as_ref() != Some(&anchor.chain));
        let position = end.position;
        if changed {
            self.restart(end);
        } else {
            let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
            if end.position > anchor.position {
                *anchor = end;
            }
        }
        Ok(position)
    }

    fn restart(&self, end: LogHead) {
        tracing::error!(position = %end.position, "the database holds another history; dropping everything read before");
        let mut ring = self.ring();
        self.cache.clear();
        ring.reset(end.position);
        self.head.send_replace(end.position);
        *self.anchor.lock().unwrap_or_else(PoisonError::into_inner) = end;
        self.history.send_modify(|count| *count += 1);
    }
}
