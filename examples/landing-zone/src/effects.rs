//! The cloud's own record of what was done to it, kept where no crash of a worker can touch it.
//!
//! Each line is one effect: its idempotency key, a tab, and what it was. A line is written with one append, and a key that
//! is in the file already has no further effect: so the file both makes the pretended cloud idempotent, also
//! across several workers and after `kill -9`, and lets anyone count effects per key afterwards.

use anyhow::Context;
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// See the module.
pub struct Effects(Mutex<Ledger>);

struct Ledger {
    file: File,
    /// How much of the file is in `done`.
    read_to: u64,
    done: HashSet<String>,
}

impl Effects {
    /// Opens or creates the record.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("opening the ledger {}", path.display()))?;
        Ok(Self(Mutex::new(Ledger { file, read_to: 0, done: HashSet::new() })))
    }

    /// Has the effect unless the key had it before. Answers whether it had it now.
    ///
    /// # Errors
    /// When the file cannot be read or written; then the effect did not happen, as far as the record can tell.
    pub fn perform(&self, key: &str, what: &str) -> std::io::Result<bool> {
        let mut ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Other workers append to the same file: between looking and appending nobody else may. The lock goes with
        // the process if it is killed.
        ledger.file.lock()?;
        let performed = ledger.perform(key, what);
        ledger.file.unlock()?;
        performed
    }
}

impl Ledger {
    fn perform(&mut self, key: &str, what: &str) -> std::io::Result<bool> {
        let whole = self.catch_up()?;
        if self.done.contains(key) {
            return Ok(false);
        }
        let (key, what) = (key.replace(['\t', '\n'], " "), what.replace(['\t', '\n'], " "));
        // A line torn by a crash ends here and names no key of ours.
        let line = format!("{}{key}\t{what}\n", if whole { "" } else { "\n" });
        self.file.write_all(line.as_bytes())?;
        Ok(true)
    }

    /// Reads what was appended since; false when the file does not end with a whole line.
    fn catch_up(&mut self) -> std::io::Result<bool> {
        self.file.seek(SeekFrom::Start(self.read_to))?;
        let mut appended = Vec::new();
        self.file.read_to_end(&mut appended)?;
        let whole = appended.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let (lines, torn) = appended.split_at(whole);
        for line in String::from_utf8_lossy(lines).lines() {
            if let Some((key, _)) = line.split_once('\t') {
                self.done.insert(key.to_owned());
            }
        }
        self.read_to += whole as u64;
        Ok(torn.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_effect_once_across_workers_and_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let (one, two) = (Effects::open(&path).unwrap(), Effects::open(&path).unwrap());
        assert!(one.perform("a", "create").unwrap());
        assert!(!two.perform("a", "create").unwrap());
        assert!(two.perform("b", "create").unwrap());
        assert!(!one.perform("b", "create").unwrap());
        let reopened = Effects::open(&path).unwrap();
        assert!(!reopened.perform("a", "create").unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\tcreate\nb\tcreate\n");
    }

    #[test]
    fn a_line_torn_by_a_crash_is_no_effect_and_spoils_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        std::fs::write(&path, "a\tcreate\nb").unwrap();
        let effects = Effects::open(&path).unwrap();
        assert!(effects.perform("b", "create").unwrap());
        assert!(!effects.perform("b", "create").unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\tcreate\nb\nb\tcreate\n");
    }

    #[test]
    fn racing_workers_never_repeat_an_effect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let effects = Effects::open(&path).unwrap();
                    for key in 0..100 {
                        effects.perform(&key.to_string(), "create").unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 100);
    }
}
