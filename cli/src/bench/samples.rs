//! Durations, and what is said of many of them.

use std::time::Duration;

use serde::Serialize;

/// Durations as they came, in microseconds.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<u32>);

/// Of many durations: how many there were, and what all but a few stayed below. In milliseconds; zeros when there were
/// none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub count: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl Samples {
    pub fn add(&mut self, duration: Duration) {
        self.0.push(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX));
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// By nearest rank: each figure is a duration that was measured.
    pub fn percentiles(mut self) -> Percentiles {
        self.0.sort_unstable();
        let count = self.0.len();
        let at = |percent: usize| {
            let rank = (count * percent).div_ceil(100).saturating_sub(1);
            self.0.get(rank).map_or(0.0, |micros| f64::from(*micros) / 1000.0)
        };
        Percentiles { count, p50_ms: at(50), p99_ms: at(99), max_ms: at(100) }
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms ({})",
            self.p50_ms, self.p99_ms, self.max_ms, self.count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let mut samples = Samples::default();
        for millis in (1..=200).rev() {
            samples.add(Duration::from_millis(millis));
        }
        let of = samples.percentiles();
        assert_eq!(of, Percentiles { count: 200, p50_ms: 100.0, p99_ms: 198.0, max_ms: 200.0 });
        assert_eq!(Samples::default().percentiles(), Percentiles::default());
    }
}
