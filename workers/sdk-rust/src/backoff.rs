//! How long to wait before dialling again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Exponential with full jitter, so that a fleet of workers does not return to a restarted broker in one instant.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// A connection worked: the next failure is a first one.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next pause.
    pub(crate) fn pause(&mut self) -> Duration {
        let ceiling = FIRST.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        ceiling.mul_f64(rand::random_range(0.1..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_ceiling_and_start_again_after_a_success() {
        let mut backoff = Backoff::default();
        for failure in 0..40_u32 {
            let pause = backoff.pause();
            assert!(pause <= LONGEST && pause <= FIRST * 2_u32.pow(failure.min(16)));
        }
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }
}
