//! How the pretended cloud behaves.

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Read from the environment; a flag wins over its variable.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Knobs {
    /// What each call to the cloud takes (`DEMO_LATENCY_MS`, `--latency-ms`).
    pub latency: Duration,
    /// The share of calls that fail as transient, 0 to 1 (`DEMO_FAULT_RATE`, `--fault-rate`).
    pub fault_rate: f64,
    /// Which calls those are (`DEMO_FAULT_SEED`, `--fault-seed`): the same seed fails the same attempts.
    pub fault_seed: u64,
    /// Where each effect on the cloud is recorded (`DEMO_LEDGER`, `--ledger`); None: nowhere.
    pub ledger: Option<PathBuf>,
}

impl Knobs {
    /// What `--help` prints.
    pub const HELP: &str = "\
landing-zone: the demo's worker

  --latency-ms N   what each cloud call takes             (DEMO_LATENCY_MS, default 0)
  --fault-rate R   share of calls that fail, 0 to 1       (DEMO_FAULT_RATE, default 0)
  --fault-seed N   which calls those are                  (DEMO_FAULT_SEED, default 0)
  --ledger PATH    append-only record of every effect     (DEMO_LEDGER, default none)

BROKER_ADDR, WORKER_MAX_PARALLEL, LOG_LEVEL and the other worker settings come from the environment.";

    /// Reads the knobs through `lookup` and from `flags`.
    ///
    /// # Errors
    /// Names the variable or flag that makes no sense.
    pub fn read(
        lookup: impl Fn(&str) -> Option<String>,
        flags: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Self> {
        let mut knobs = Self::default();
        for name in ["DEMO_LATENCY_MS", "DEMO_FAULT_RATE", "DEMO_FAULT_SEED", "DEMO_LEDGER"] {
            if let Some(value) = lookup(name).filter(|value| !value.is_empty()) {
                knobs.set(name, &value)?;
            }
        }
        let mut flags = flags.into_iter();
        while let Some(flag) = flags.next() {
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (flag, None),
            };
            let value = value.or_else(|| flags.next()).with_context(|| format!("{name} needs a value"))?;
            knobs.set(&name, &value)?;
        }
        Ok(knobs)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "DEMO_LATENCY_MS" | "--latency-ms" => self.latency = Duration::from_millis(number(name, value)?),
            "DEMO_FAULT_SEED" | "--fault-seed" => self.fault_seed = number(name, value)?,
            "DEMO_LEDGER" | "--ledger" => self.ledger = Some(PathBuf::from(value)),
            "DEMO_FAULT_RATE" | "--fault-rate" => {
                self.fault_rate = number(name, value)?;
                if !(0.0..=1.0).contains(&self.fault_rate) {
                    bail!("{name}=`{value}`: expected a share from 0 to 1");
                }
            }
            _ => bail!("unknown flag `{name}`; see --help"),
        }
        Ok(())
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> anyhow::Result<T> {
    value.parse().ok().with_context(|| format!("{name}=`{value}`: expected a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(flags: &[&str]) -> anyhow::Result<Knobs> {
        let lookup = |name: &str| (name == "DEMO_LATENCY_MS").then(|| "5".to_owned());
        Knobs::read(lookup, flags.iter().map(|flag| (*flag).to_owned()))
    }

    #[test]
    fn a_flag_wins_over_its_variable() {
        assert_eq!(flags(&[]).unwrap().latency, Duration::from_millis(5));
        let knobs = flags(&["--latency-ms", "7", "--fault-rate=0.25", "--ledger", "/tmp/x"]).unwrap();
        assert_eq!(knobs.latency, Duration::from_millis(7));
        assert_eq!((knobs.fault_rate, knobs.ledger), (0.25, Some(PathBuf::from("/tmp/x"))));
    }

    #[test]
    fn nonsense_is_an_error_that_names_it() {
        for (bad, named) in [
            (&["--fault-rate", "2"][..], "--fault-rate"),
            (&["--latency-ms", "slow"][..], "--latency-ms"),
            (&["--ledger"][..], "--ledger"),
            (&["--lattency", "1"][..], "--lattency"),
        ] {
            let message = flags(bad).unwrap_err().to_string();
            assert!(message.contains(named), "{message}");
        }
    }
}
