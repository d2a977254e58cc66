//! Exponential backoff with full jitter.

/// Milliseconds to wait after `attempt` (from 1); `jitter` in [0, 1).
pub fn delay_ms(attempt: u32, jitter: f64) -> i64 {
    let ceiling = 500_i64.saturating_mul(1 << attempt.saturating_sub(1).min(10)).min(300_000);
    (ceiling as f64 * jitter) as i64
}
