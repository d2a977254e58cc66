//! The task that reads what our own lanes did not publish.

use super::{Anchor, Shared, is_set, reached};
use crate::store::{LogHead, StoreError, StoredEvent};
use converge_domain::Position;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Events read at once.
const PAGE: u32 = 1000;
/// Notifications within this time cause one look.
const COALESCE: Duration = Duration::from_millis(5);
/// How long a gap may be closed by our own lanes before it is read: their events are on the way, and reading them
/// would only double the work.
const OWN_LANES: Duration = Duration::from_millis(40);
/// Longest time between comparisons of a growing log with what was read before.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);
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
            let (from, known) = self.frontier();
            if from >= end {
                return Ok(());
            }
            // The event at the frontier is read again: if another one is there, this is another history.
            let overlap = u64::from(known.is_some());
            let mut events = self.store.read(Position(from.0 - overlap), PAGE).await?;
            if let Some(known) = known {
                if events.first().is_none_or(|event| !same_event(event, &known)) {
                    let end = self.store.log_head().await?;
                    self.restart(end);
                    return Ok(());
                }
                events.remove(0);
            }
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
    /// A log that ends before our frontier lost commits. One that is longer is compared at the *anchor*, the last end that
    /// was compared: its chain hash there stands for everything before. The anchor moves only with a comparison, so
    /// a changed history cannot slip by however late it is looked for. A comparison costs a query; it is done after an
    /// outage at once, and else about once a second.
    pub(super) async fn look_at_end(&self) -> Result<Position, StoreError> {
        let suspect = self.suspect.swap(false, Ordering::SeqCst);
        let result = self.compare(suspect).await;
        if result.is_err() && suspect {
            self.suspect.store(true, Ordering::SeqCst);
        }
        result
    }

    /// The frontier and the event there, if it is kept.
    fn frontier(&self) -> (Position, Option<StoredEvent>) {
        let ring = self.ring();
        (ring.frontier(), ring.last_event().cloned())
    }

    async fn compare(&self, suspect: bool) -> Result<Position, StoreError> {
        let (seen, known) = self.frontier();
        // Read before the end: an anchor that another look moves meanwhile would make this end look too short.
        let anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let end = self.store.log_head().await?;
        let position = end.position;
        if position < seen || position < anchor.head.position {
            self.restart(end);
            return Ok(position);
        }
        if position == anchor.head.position {
            if end.chain != anchor.head.chain {
                self.restart(end);
            }
            return Ok(position);
        }
        if !suspect && anchor.compared.elapsed() < COMPARE_INTERVAL {
            return Ok(position);
        }
        let mut same = anchor.head.position == Position(0)
            || self.store.chain_at(anchor.head.position).await?.as_ref() == Some(&anchor.head.chain);
        if let Some(known) = known.filter(|_| same) {
            // Between the anchor and the frontier: what is at the frontier now?
            let there = self.store.read(Position(seen.0 - 1), 1).await?;
            same = there.first().is_some_and(|event| same_event(event, &known));
        }
        if same {
            let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
            if position > anchor.head.position {
                *anchor = Anchor { head: end, compared: Instant::now() };
            }
        } else {
            self.restart(end);
        }
        Ok(position)
    }

    fn restart(&self, end: LogHead) {
        tracing::error!(position = %end.position, "the database holds another history; dropping everything read before");
        let mut ring = self.ring();
        self.cache.clear();
        ring.reset(end.position);
        self.head.send_replace(end.position);
        *self.anchor.lock().unwrap_or_else(PoisonError::into_inner) =
            Anchor { head: end, compared: Instant::now() };
        self.history.send_modify(|count| *count += 1);
    }
}

/// Whether two reads of a position found the same event. Ids are random, so two histories differ in them at once.
fn same_event(a: &StoredEvent, b: &StoredEvent) -> bool {
    (a.position, a.aggregate_id, a.sequence, a.committed_at)
        == (b.position, b.aggregate_id, b.sequence, b.committed_at)
}
