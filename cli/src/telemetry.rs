//! Logs: to stderr always, so that stdout stays an answer; how much and in which form by the environment.

use tracing_subscriber::EnvFilter;

/// Starts logging by `LOG_LEVEL` (a level or a filter such as `info,converge_engine=debug`) and
/// `LOG_FORMAT` (`text` or `json`). Without `LOG_LEVEL`, `default_level` holds: servers talk, clients do not.
///
/// # Errors
/// When `LOG_LEVEL` is not a filter or `LOG_FORMAT` is not a known word: a log that is silently off is
/// discovered when it is needed most.
pub fn start(default_level: &str) -> Result<(), String> {
    let level = std::env::var("LOG_LEVEL").unwrap_or_else(|_| default_level.to_owned());
    let filter = EnvFilter::try_new(&level).map_err(|error| format!("LOG_LEVEL=`{level}`: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match std::env::var("LOG_FORMAT").as_deref() {
        Ok("json") => builder.json().init(),
        Ok("text" | "") | Err(_) => {
            let coloured = crate::console::is_watched()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            builder.with_ansi(coloured).init();
        }
        Ok(other) => return Err(format!("LOG_FORMAT=`{other}`: it is `text` or `json`")),
    }
    Ok(())
}
