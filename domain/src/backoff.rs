//! Exponential backoff with full jitter.
//!
//! A fleet that failed together must not come back together: each retry waits a uniformly drawn part of an
//! exponentially growing window, which spreads load better than a small jitter around a fixed delay. The draw
//! comes from the caller, since decisions are pure.

/// Window of the first retry.
pub const BASE_MS: i64 = 500;
/// Largest window: five minutes.
pub const CAP_MS: i64 = 5 * 60 * 1000;

/// Milliseconds to wait before trying again after `attempt` failed attempts (1 for the first).
///
/// The window is `BASE_MS` doubled per further attempt, at most `CAP_MS`; `jitter`, a fraction in [0, 1), chooses
/// the delay inside it. Fractions outside that range, and NaN, are pulled into it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "windows are far below 2^53 and the product stays inside the window"
)]
pub fn delay_ms(attempt: u32, jitter: f64) -> i64 {
    // Twenty doublings are past the cap already, so the shift cannot overflow.
    let doublings = attempt.saturating_sub(1).min(20);
    let window = (BASE_MS << doublings).min(CAP_MS);
    let fraction = if jitter.is_nan() { 1.0 } else { jitter.clamp(0.0, 1.0) };
    (window as f64 * fraction) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn windows_double_up_to_the_cap() {
        let windows: Vec<i64> = (0..=12).map(|attempt| delay_ms(attempt, 1.0)).collect();
        assert_eq!(
            windows,
            [500, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]
        );
        assert_eq!(delay_ms(u32::MAX, 1.0), CAP_MS);
        assert_eq!(delay_ms(3, 0.5), 1000);
    }

    proptest! {
        #[test]
        fn a_delay_never_leaves_its_window(attempt: u32, jitter: f64) {
            let delay = delay_ms(attempt, jitter);
            prop_assert!((0..=CAP_MS).contains(&delay));
            prop_assert!(delay <= delay_ms(attempt, 1.0));
        }

        #[test]
        fn a_window_is_never_smaller_than_the_one_before(attempt in 0_u32..64) {
            prop_assert!(delay_ms(attempt, 1.0) <= delay_ms(attempt + 1, 1.0));
        }
    }
}
