//! From words to settings.

use super::{LogFormat, Settings, SettingsError};
use crate::tls::TlsFiles;
use std::time::Duration;

/// Most slots a worker may ask for.
const PARALLEL_MAX: usize = 4096;

impl Settings {
    /// Reads settings through `lookup`; an empty value counts as not set.
    ///
    /// # Errors
    /// The first malformed variable.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let default = Self::default();
        let brokers = match get("BROKER_ADDR") {
            None => default.brokers,
            Some(value) => list(&value)
                .into_iter()
                .map(|broker| check_broker(&broker).map(|()| broker))
                .collect::<Result<_, _>>()
                .map_err(|problem| SettingsError::new("BROKER_ADDR", &value, problem))?,
        };
        Ok(Self {
            brokers,
            max_parallel: parsed(&get, "WORKER_MAX_PARALLEL", parallel)?.unwrap_or(default.max_parallel),
            drain_timeout: parsed(&get, "WORKER_DRAIN_TIMEOUT", duration)?.unwrap_or(default.drain_timeout),
            kinds: get("WORKER_KINDS").map(|value| list(&value)),
            health: parsed(&get, "HEALTH_ADDR", |value| {
                value.parse().map_err(|_| "expected an address such as 127.0.0.1:8081".to_owned())
            })?,
            tls: tls(&get)?,
        })
    }
}

pub(crate) fn log_settings(
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<(String, LogFormat), SettingsError> {
    let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    let format = parsed(&get, "LOG_FORMAT", |value| match value {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("expected `text` or `json`".to_owned()),
    })?;
    let level = get("LOG_LEVEL").unwrap_or_else(|| "info".to_owned());
    Ok((level, format.unwrap_or(LogFormat::Text)))
}

fn parsed<T>(
    get: &impl Fn(&str) -> Option<String>,
    name: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, SettingsError> {
    let Some(value) = get(name) else { return Ok(None) };
    parse(value.trim()).map(Some).map_err(|problem| SettingsError::new(name, &value, problem))
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn parallel(value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(number @ 1..=PARALLEL_MAX) => Ok(number),
        _ => Err(format!("expected a number from 1 to {PARALLEL_MAX}")),
    }
}

/// `30`, `30s`, `500ms` or `2m`; a bare number is seconds.
fn duration(value: &str) -> Result<Duration, String> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "expected a duration such as 30s".to_owned())?;
    match unit {
        "" | "s" => Ok(Duration::from_secs(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "m" => {
            number.checked_mul(60).map(Duration::from_secs).ok_or_else(|| "too long a duration".to_owned())
        }
        _ => Err("expected the unit ms, s or m".to_owned()),
    }
}

fn check_broker(broker: &str) -> Result<(), String> {
    let address = broker.strip_prefix("http://").or(broker.strip_prefix("https://")).unwrap_or(broker);
    let port = address.trim_end_matches('/').rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(()),
        _ => Err(format!("expected host:port, found `{broker}`")),
    }
}

fn tls(get: &impl Fn(&str) -> Option<String>) -> Result<Option<TlsFiles>, SettingsError> {
    let (cert, key, ca) = (get("TLS_CERT_FILE"), get("TLS_KEY_FILE"), get("BROKER_CA_FILE"));
    let reload = parsed(get, "TLS_RELOAD_INTERVAL", |value| match duration(value)? {
        Duration::ZERO => Err("expected more than zero".to_owned()),
        interval => Ok(interval),
    })?;
    let identity = match (cert, key) {
        (Some(cert), Some(key)) => Some((cert.into(), key.into())),
        (None, None) => None,
        (Some(cert), None) => {
            return Err(SettingsError::new("TLS_CERT_FILE", &cert, "TLS_KEY_FILE is missing"));
        }
        (None, Some(key)) => {
            return Err(SettingsError::new("TLS_KEY_FILE", &key, "TLS_CERT_FILE is missing"));
        }
    };
    match (identity, ca) {
        (None, None) if reload.is_some() => {
            let value = get("TLS_RELOAD_INTERVAL").unwrap_or_default();
            Err(SettingsError::new("TLS_RELOAD_INTERVAL", &value, "there are no TLS files to reload"))
        }
        (None, None) => Ok(None),
        (Some(_), None) => {
            let value = get("TLS_CERT_FILE").unwrap_or_default();
            Err(SettingsError::new("TLS_CERT_FILE", &value, "BROKER_CA_FILE is missing"))
        }
        (identity, Some(ca)) => Ok(Some(TlsFiles { ca: ca.into(), identity, reload })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let find = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Settings::from_lookup(find)
    }

    #[test]
    fn an_empty_environment_means_the_defaults() {
        assert_eq!(read(&[]), Ok(Settings::default()));
        assert_eq!(read(&[("WORKER_MAX_PARALLEL", "")]), Ok(Settings::default()));
    }

    #[test]
    fn every_malformed_value_is_an_error_that_names_its_variable() {
        let bad = [
            ("BROKER_ADDR", "localhost"),
            ("WORKER_MAX_PARALLEL", "many"),
            ("WORKER_MAX_PARALLEL", "0"),
            ("WORKER_MAX_PARALLEL", "4097"),
            ("WORKER_DRAIN_TIMEOUT", "soon"),
            ("WORKER_DRAIN_TIMEOUT", "3h"),
            ("HEALTH_ADDR", "8080"),
            ("TLS_CERT_FILE", "cert.pem"),
            ("TLS_KEY_FILE", "key.pem"),
            ("TLS_RELOAD_INTERVAL", "1m"),
        ];
        for (name, value) in bad {
            let message = read(&[(name, value)]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{name}=`{value}`: ")), "{message}");
        }
    }

    #[test]
    fn durations_are_seconds_unless_they_say_so() {
        let timeout = |value| read(&[("WORKER_DRAIN_TIMEOUT", value)]).unwrap().drain_timeout;
        assert_eq!(timeout("45"), Duration::from_secs(45));
        assert_eq!(timeout("250ms"), Duration::from_millis(250));
        assert_eq!(timeout("2m"), Duration::from_secs(120));
    }

    #[test]
    fn brokers_and_kinds_are_lists() {
        let settings = read(&[("BROKER_ADDR", "a:1, https://b:2"), ("WORKER_KINDS", "vpc,tgw")]).unwrap();
        assert_eq!(settings.brokers, ["a:1", "https://b:2"]);
        assert_eq!(settings.kinds, Some(vec!["vpc".to_owned(), "tgw".to_owned()]));
    }
}
