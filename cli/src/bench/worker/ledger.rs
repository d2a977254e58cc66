//! What was done to the world outside, kept where no crash of a worker can touch it: one line an effect, each written by
//! one append. A task that is delivered again writes again, under the same idempotency key, by which a real outside would
//! know it; so keys are counted and not lines.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use converge_sdk::{Request, TaskError};

/// Names the file; without it nothing is written.
pub const LEDGER_ENV: &str = "CONVERGE_BENCH_LEDGER";

/// The worker's end.
pub struct Ledger(Option<File>);

impl Ledger {
    pub fn from_env() -> anyhow::Result<Self> {
        let Some(path) = std::env::var_os(LEDGER_ENV) else { return Ok(Self(None)) };
        let file = OpenOptions::new().append(true).create(true).open(&path);
        Ok(Self(Some(
            file.with_context(|| format!("cannot open the ledger {}", Path::new(&path).display()))?,
        )))
    }

    /// Has the effect that the task asks for.
    pub fn perform(&self, task: &Request) -> Result<(), TaskError> {
        let Some(mut file) = self.0.as_ref() else { return Ok(()) };
        let (key, reaction, id) = (&task.idempotency_key, task.reaction.as_str(), &task.id);
        // A finalizer is stripped once in a life, work is done once a generation.
        let decision = task.finalizer.clone().unwrap_or_else(|| task.generation.to_string());
        // One write of a short line at the end of the file is one piece, whoever else writes.
        Ok(file.write_all(format!("{key}\t{reaction}\t{id}\t{decision}\n").as_bytes())?)
    }
}

/// The bench's end: what stands in the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// Distinct decisions (a resource's generation, a finalizer) that were worked.
    pub worked: usize,
    /// The same of teardowns.
    pub torn_down: usize,
    /// Decisions that were carried out under more than one key: nothing could have recognised the second.
    pub doubled: usize,
    /// Lines that repeat a key: deliveries that an idempotent outside recognises.
    pub redelivered: usize,
}

impl Effects {
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::count(&std::fs::read_to_string(path).context("cannot read the ledger")?))
    }

    fn count(ledger: &str) -> Self {
        let mut keys: HashMap<(&str, &str, &str), HashSet<&str>> = HashMap::new();
        let mut lines = 0;
        for line in ledger.lines() {
            let mut fields = line.split('\t');
            // A line that a kill has cut short is no effect that anybody knows of.
            let (Some(key), Some(reaction), Some(id), Some(decision)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            lines += 1;
            keys.entry((reaction, id, decision)).or_default().insert(key);
        }
        let of = |word: &str| keys.keys().filter(|(reaction, ..)| *reaction == word).count();
        let distinct: usize = keys.values().map(HashSet::len).sum();
        Self {
            worked: of("work"),
            torn_down: of("teardown"),
            doubled: distinct - keys.len(),
            redelivered: lines - distinct,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redelivery_is_told_from_a_second_decision() {
        let ledger = "k1\twork\ta\t1\nk1\twork\ta\t1\nk2\twork\ta\t2\nk3\tteardown\ta\tf\n";
        let effects = Effects::count(ledger);
        assert_eq!(effects, Effects { worked: 2, torn_down: 1, doubled: 0, redelivered: 1 });
        let effects = Effects::count(&format!("{ledger}k4\twork\ta\t2\nk5\twor"));
        assert_eq!(effects, Effects { worked: 2, torn_down: 1, doubled: 1, redelivered: 1 });
    }
}
