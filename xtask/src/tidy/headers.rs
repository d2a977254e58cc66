//! Rule: every source file opens by saying why it exists. Who opens a file in the middle of the night should not
//! have to guess.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter_map(|(path, text)| complaint(path, text).map(|why| Finding::error(path, why)))
        .collect()
}

fn complaint(path: &str, text: &str) -> Option<String> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let extension =
        path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    let (line, opening) = match extension {
        Some("rs") => (first, "//!"),
        Some("sql") => (first, "--"),
        Some("proto") => (first, "//"),
        _ if first.starts_with("#!") => (lines.next().unwrap_or_default(), "#"),
        Some("sh") => return Some("a shell script opens with `#!` and then a comment".to_owned()),
        _ => return None,
    };
    let said = line.strip_prefix(opening).is_some_and(|rest| rest.chars().any(char::is_alphanumeric));
    // Python says it in a docstring as often as in a comment.
    let docstring = first.contains("python") && line.starts_with("\"\"\"");
    (!said && !docstring).then(|| format!("open the file with a `{opening}` header that says why it exists"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine(path: &str, text: &str) -> bool {
        check(&Tree::of(&[(path, text)])).is_empty()
    }

    #[test]
    fn rust_opens_with_module_documentation() {
        assert!(fine("a/src/lib.rs", "//! Why.\n"));
        assert!(!fine("a/src/lib.rs", "use std::fs;\n"));
        assert!(!fine("a/src/lib.rs", "//!\n"));
        assert!(!fine("a/src/lib.rs", ""));
    }

    #[test]
    fn sql_opens_with_a_comment() {
        assert!(fine("q/claim.sql", "-- Locks heads.\nSELECT 1\n"));
        assert!(!fine("q/claim.sql", "SELECT 1\n"));
    }

    #[test]
    fn scripts_say_it_after_the_first_line() {
        assert!(fine("run", "#!/bin/sh\n# Why.\n"));
        assert!(!fine("run", "#!/bin/sh\nset -e\n"));
        assert!(!fine("x.sh", "set -e\n"));
        assert!(fine("leaf.py", "#!/usr/bin/env python3\n\"\"\"Why.\"\"\"\n"));
    }

    #[test]
    fn other_files_are_left_alone() {
        assert!(fine("README.md", "# Title\n"));
        assert!(fine("data.json", "{}"));
    }
}
