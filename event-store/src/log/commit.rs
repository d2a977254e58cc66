//! Getting one batch into the store: what to do about each kind of failure.

use super::draft::new_batch_id;
use super::handle::Inner;
use crate::store::{Appended, Batch, ConflictKind, StoreError, UnitConflict};
use rand::Rng;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Backs off up to a point in time.
pub(super) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    pub(super) fn new(longest: Duration) -> Self {
        Self { until: Instant::now() + longest, pause: Duration::from_millis(10) }
    }

    /// Pauses, longer each time and with jitter; false when it has been long enough.
    pub(super) async fn wait(&mut self) -> bool {
        const PAUSE_MAX: Duration = Duration::from_millis(500);
        if Instant::now() >= self.until {
            return false;
        }
        let share = rand::rng().random_range(0.5..1.0);
        tokio::time::sleep(self.pause.mul_f64(share)).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

impl Inner {
    /// Appends `batch` with the outcome known. Its id is renewed where an attempt was given up.
    pub(super) async fn append_known(&self, batch: &mut Batch) -> Result<Appended, StoreError> {
        let mut patience = Patience::new(self.config.unavailable_max);
        let mut retries = 0;
        let mut away = false;
        loop {
            let error = match self.store.append(batch).await {
                Ok(appended) => {
                    if away {
                        self.tail.check_history().await;
                    }
                    return Ok(appended);
                }
                Err(error) => error,
            };
            match error {
                StoreError::Retry(_) if retries < self.config.batch_retries_max => {
                    retries += 1;
                    let pause_ms = rand::rng().random_range(0..=u64::from(retries.min(10)));
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                }
                StoreError::Unavailable(_) if patience.wait().await => {
                    away = true;
                    self.tail.suspect();
                }
                StoreError::OutcomeUnknown(_) => {
                    away = true;
                    self.tail.suspect();
                    if let Some(appended) = self.resolve(batch).await? {
                        self.tail.check_history().await;
                        return Ok(appended);
                    }
                    // It never committed and never will. Another attempt is another batch: the old id is fenced.
                    batch.batch_id = new_batch_id();
                    if !patience.wait().await {
                        return Err(StoreError::Unavailable(
                            "the connection was lost again and again".into(),
                        ));
                    }
                }
                error => return Err(error),
            }
        }
    }

    /// Finds out what became of a batch. There is no limit in time: its callers must not be told "failed" about
    /// something that may be in the log. Only a log that shuts down gives up.
    async fn resolve(&self, batch: &Batch) -> Result<Option<Appended>, StoreError> {
        let mut patience = Patience::new(Duration::from_secs(u64::from(u32::MAX)));
        let since = Instant::now();
        loop {
            match self.find_with_survivors(batch).await {
                Ok(found) => return Ok(found),
                Err(error) => tracing::warn!(%error, batch = %batch.batch_id, "outcome still unknown"),
            }
            patience.wait().await;
            if self.closing.load(Ordering::SeqCst) && since.elapsed() > self.config.unavailable_max {
                return Err(StoreError::OutcomeUnknown(batch.batch_id));
            }
        }
    }

    /// A batch row does not say which units were left out; the events it holds do.
    async fn find_with_survivors(&self, batch: &Batch) -> Result<Option<Appended>, StoreError> {
        let Some(mut appended) = self.store.find_batch(batch.batch_id).await? else { return Ok(None) };
        let limit = u32::try_from(appended.count).unwrap_or(u32::MAX);
        let before = converge_domain::Position(appended.first.0 - 1);
        let events = self.store.read(before, limit).await?;
        let stored: HashSet<_> = events.iter().map(|event| (event.aggregate_id, event.sequence)).collect();
        let lost: BTreeSet<u32> = batch
            .events
            .iter()
            .filter(|event| !stored.contains(&(event.aggregate_id, event.sequence)))
            .map(|event| event.unit)
            .collect();
        appended.conflicts =
            lost.into_iter().map(|unit| UnitConflict { unit, kind: ConflictKind::Head }).collect();
        Ok(Some(appended))
    }
}
