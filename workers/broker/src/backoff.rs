//! Bounded retries of engine calls, so that a database that restarts costs a pause and not a task.

use crate::config::BrokerConfig;
use converge_engine::dispatch::DispatchError;
use std::future::Future;
use std::time::Duration;

/// The pause before attempt `attempt + 1`, with full jitter: brokers that failed together must not return together.
pub(crate) fn pause(config: &BrokerConfig, attempt: u32) -> Duration {
    let ceiling = config
        .backoff_min
        .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1).min(16)))
        .min(config.backoff_max);
    ceiling.mul_f64(rand::random_range(0.5..=1.0))
}

/// Calls until it succeeds or [`BrokerConfig::attempts_max`] attempts have failed; then the last error.
pub(crate) async fn retry<T, F>(
    config: &BrokerConfig,
    what: &'static str,
    mut call: impl FnMut() -> F,
) -> Result<T, DispatchError>
where
    F: Future<Output = Result<T, DispatchError>>,
{
    let mut attempt = 1;
    loop {
        match call().await {
            Ok(value) => return Ok(value),
            Err(error) if attempt >= config.attempts_max => return Err(error),
            Err(error) => {
                tracing::warn!(%error, attempt, "{what}: the engine could not do it; trying again");
                tokio::time::sleep(pause(config, attempt)).await;
                attempt += 1;
            }
        }
    }
}
