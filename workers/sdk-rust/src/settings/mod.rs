//! What the environment says. A malformed value is an error that names the variable: a worker that runs with a
//! limit its operator did not mean is worse than one that does not start.

mod parse;

use crate::tls::TlsFiles;
pub(crate) use parse::log_settings;
use std::net::SocketAddr;
use std::time::Duration;

/// A variable that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name}=`{value}`: {problem}")]
pub struct SettingsError {
    name: String,
    value: String,
    problem: String,
}

impl SettingsError {
    pub(crate) fn new(name: &str, value: &str, problem: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.to_owned(), problem: problem.into() }
    }
}

/// How logs look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// A worker's settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Brokers to dial, tried in turn: `host:port` or a URL (`BROKER_ADDR`, separated by commas).
    pub brokers: Vec<String>,
    /// Most tasks at once (`WORKER_MAX_PARALLEL`).
    pub max_parallel: usize,
    /// How long a stopping worker may finish what it runs (`WORKER_DRAIN_TIMEOUT`).
    pub drain_timeout: Duration,
    /// Serve only these of the hosted kinds (`WORKER_KINDS`); None: all.
    pub kinds: Option<Vec<String>>,
    /// Answer `/livez` and `/readyz` here (`HEALTH_ADDR`).
    pub health: Option<SocketAddr>,
    /// TLS towards the broker.
    pub tls: Option<TlsFiles>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            brokers: vec!["127.0.0.1:9090".to_owned()],
            max_parallel: 64,
            drain_timeout: Duration::from_secs(30),
            kinds: None,
            health: None,
            tls: None,
        }
    }
}

impl Settings {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// The first malformed variable.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }
}
