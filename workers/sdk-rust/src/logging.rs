//! `LOG_LEVEL` and `LOG_FORMAT`.

use crate::settings::{LogFormat, SettingsError};
use tracing_subscriber::EnvFilter;

/// Sends logs to stderr in the form that the environment asks for. Does nothing where a subscriber is installed already.
///
/// # Errors
/// A malformed `LOG_LEVEL` or `LOG_FORMAT`.
pub fn init_logging() -> Result<(), SettingsError> {
    let (level, format) = crate::settings::log_settings(|name| std::env::var(name).ok())?;
    let filter = EnvFilter::try_new(&level)
        .map_err(|error| SettingsError::new("LOG_LEVEL", &level, error.to_string()))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that the embedding program has its own subscriber, which is its right.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    Ok(())
}
