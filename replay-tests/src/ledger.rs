//! The pretended cloud's record of what was done to it, read back.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The file a worker writes its effects to.
#[derive(Clone, Debug)]
pub struct Ledger(PathBuf);

impl Ledger {
    /// The record at `path`, which need not exist yet.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &PathBuf {
        &self.0
    }

    /// `(idempotency key, what)` of every effect, in order.
    pub fn effects(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.split_once('\t'))
            .map(|(key, what)| (key.to_owned(), what.to_owned()))
            .collect()
    }

    /// How often each thing was done, such as `create vpc region/fd-0/team-1`, by whatever key.
    ///
    /// # Panics
    /// When one key had two effects.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut keys = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (key, what) in self.effects() {
            *counts.entry(what.clone()).or_default() += 1;
            if let Some(before) = keys.insert(key.clone(), what.clone()) {
                panic!("key {key} had two effects: {before} and {what}");
            }
        }
        counts
    }

    /// Each key had one effect, and each of `subjects` had `verb` done to it once: so no decision was made twice
    /// under two keys either. Nothing else had `verb` done to it.
    pub fn assert_once_each(&self, verb: &str, subjects: impl IntoIterator<Item = (String, String)>) {
        let wanted: BTreeMap<String, usize> =
            subjects.into_iter().map(|(kind, name)| (format!("{verb} {kind} {name}"), 1)).collect();
        let mut found = self.counts();
        found.retain(|what, _| what.starts_with(verb));
        assert_eq!(found, wanted);
    }
}
