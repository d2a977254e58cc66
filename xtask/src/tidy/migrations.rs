//! Rules for `migrations/`: a number once, never edited after a release, explained, and without foreign keys.
//!
//! A database out there has run the migration as it was; editing the file changes nothing there and makes two
//! schemas of one number. `migrations/RELEASED` holds the digest of every migration that was part of a release.

use std::collections::BTreeMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const FOLDER: &str = "migrations/";

/// Digest and file name of every released migration, a line each.
pub(crate) const CHECKSUMS: &str = "migrations/RELEASED";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers: BTreeMap<u64, &str> = BTreeMap::new();
    for (path, name, text) in migrations(tree) {
        match number(name) {
            None => findings.push(Finding::error(path, "name it <number>_<what>.sql, in lower case")),
            Some(number) => {
                if let Some(other) = numbers.insert(number, name) {
                    findings.push(Finding::error(path, format!("number {number} is taken by {other}")));
                }
            }
        }
        if references_a_table(text) {
            let message = "no foreign keys: each one locks a row of another table at every write, \
                           which breaks the one lock order";
            findings.push(Finding::error(path, message));
        }
    }
    for (digest, name) in released(tree) {
        let path = format!("{FOLDER}{name}");
        match tree.get(&path) {
            None => findings.push(Finding::error(&path, "it was released and is gone; restore it")),
            Some(text) if digest_of(text) != digest => {
                findings.push(Finding::error(
                    &path,
                    "it was released and is edited; restore it and write a new one",
                ));
            }
            Some(_) => {}
        }
    }
    findings
}

/// The content of [`CHECKSUMS`] after a release of everything that is there. Released lines stay as they are.
pub(crate) fn freeze(tree: &Tree) -> String {
    let mut lines: BTreeMap<&str, String> =
        released(tree).map(|(digest, name)| (name, digest.to_owned())).collect();
    for (_, name, text) in migrations(tree) {
        lines.entry(name).or_insert_with(|| digest_of(text));
    }
    lines.iter().fold(String::new(), |mut all, (name, digest)| {
        // Writing to a string cannot fail.
        let _ = writeln!(all, "{digest}  {name}");
        all
    })
}

fn migrations(tree: &Tree) -> impl Iterator<Item = (&str, &str, &str)> {
    tree.with_extension(&["sql"]).filter_map(|(path, text)| {
        let name = path.strip_prefix(FOLDER).filter(|name| !name.contains('/'))?;
        Some((path, name, text))
    })
}

fn released(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.get(CHECKSUMS).unwrap_or_default().lines().filter_map(|line| line.split_once("  "))
}

fn digest_of(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn number(name: &str) -> Option<u64> {
    let (number, what) = name.strip_suffix(".sql")?.split_once('_')?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    number.parse().ok().filter(|_| !what.is_empty() && what.chars().all(plain))
}

/// Comments may speak of foreign keys.
fn references_a_table(sql: &str) -> bool {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_ascii_uppercase))
        .any(|word| word == "REFERENCES" || word == "FOREIGN")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .into_iter()
            .map(|finding| format!("{}: {}", finding.path, finding.message))
            .collect()
    }

    #[test]
    fn a_number_is_given_once_whatever_its_zeros() {
        let found = messages(&[("migrations/0001_log.sql", "-- a"), ("migrations/1_names.sql", "-- b")]);
        assert_eq!(found, ["migrations/1_names.sql: number 1 is taken by 0001_log.sql"]);
    }

    #[test]
    fn a_name_says_number_and_purpose() {
        assert_eq!(messages(&[("migrations/log.sql", "-- a")]).len(), 1);
        assert_eq!(messages(&[("migrations/0002_.sql", "-- a")]).len(), 1);
    }

    #[test]
    fn foreign_keys_are_refused_and_may_be_spoken_of() {
        assert_eq!(
            messages(&[("migrations/0001_a.sql", "-- a\nCREATE TABLE b (a int references c);")]).len(),
            1
        );
        assert!(
            messages(&[("migrations/0001_a.sql", "-- no FOREIGN KEY here\nCREATE TABLE b (a int);")])
                .is_empty()
        );
    }

    #[test]
    fn a_released_migration_is_never_edited_or_removed() {
        let released = freeze(&Tree::of(&[("migrations/0001_log.sql", "-- a")]));
        let with = |text| messages(&[("migrations/0001_log.sql", text), (CHECKSUMS, released.as_str())]);
        assert!(with("-- a").is_empty());
        assert_eq!(with("-- b").len(), 1);
        assert_eq!(messages(&[(CHECKSUMS, released.as_str())]).len(), 1);
    }

    #[test]
    fn a_release_adds_lines_and_changes_none() {
        let first = freeze(&Tree::of(&[("migrations/0001_log.sql", "-- a")]));
        let second = freeze(&Tree::of(&[
            ("migrations/0001_log.sql", "-- edited"),
            ("migrations/0002_names.sql", "-- b"),
            (CHECKSUMS, first.as_str()),
        ]));
        assert!(second.starts_with(&first));
        assert_eq!(second.lines().count(), 2);
    }
}
