//! Time on the database's clock, without asking the database each time.
//!
//! Leases, backoff and grace windows compare times that different processes wrote, so they all use the
//! database's clock. A process reads it once in a while and adds its own *monotonic* elapsed time: a host
//! clock that jumps changes nothing.

use crate::store::{Store, StoreError};
use converge_domain::Timestamp;
use std::sync::Mutex;
use tokio::time::Instant;

/// Tells the time on the database's clock.
pub trait Clock: Send + Sync + 'static {
    /// Now, in milliseconds since the epoch. Never goes back within one process.
    fn now(&self) -> Timestamp;
}

/// The last reading and what was told since.
#[derive(Debug)]
struct Reading {
    at: Timestamp,
    taken: Instant,
    told: Timestamp,
}

/// A [`Clock`] fed by readings of the database's clock.
#[derive(Debug)]
pub struct DatabaseClock {
    reading: Mutex<Reading>,
}

impl DatabaseClock {
    /// Starts from a reading.
    pub fn new(at: Timestamp) -> Self {
        Self { reading: Mutex::new(Reading { at, taken: Instant::now(), told: at }) }
    }

    /// Starts from the store's clock.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        Ok(Self::new(store.now().await?))
    }

    /// Takes a fresh reading, such as the commit time of a batch. A reading that lags behind what elapsed time
    /// says (it travelled through the network first) is ignored unless it lags by more than a second: then the
    /// database's clock was set back, or another machine took over, and the new reading counts.
    pub fn observe(&self, at: Timestamp) {
        const LAG_MS_MAX: i64 = 1000;
        let mut reading = self.reading.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let estimate = elapsed_since(&reading);
        if at > estimate || estimate.0 - at.0 > LAG_MS_MAX {
            reading.at = at;
            reading.taken = Instant::now();
        }
    }
}

fn elapsed_since(reading: &Reading) -> Timestamp {
    let elapsed = i64::try_from(reading.taken.elapsed().as_millis()).unwrap_or(i64::MAX);
    reading.at.plus_ms(elapsed)
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let mut reading = self.reading.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = elapsed_since(&reading).max(reading.told);
        reading.told = now;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_told_never_goes_back() {
        let clock = DatabaseClock::new(Timestamp(1_000_000));
        clock.observe(Timestamp(1_050_000));
        assert!(clock.now() >= Timestamp(1_050_000));
        clock.observe(Timestamp(900_000));
        assert!(clock.now() >= Timestamp(1_050_000));
    }

    #[test]
    fn an_observation_that_travelled_a_little_does_not_slow_the_clock() {
        let clock = DatabaseClock::new(Timestamp(1_000_000));
        clock.observe(Timestamp(999_900));
        assert!(clock.now() >= Timestamp(1_000_000));
    }
}
