//! Rule: every invariant in `docs/architecture.md` names the test that holds it, and that test exists. A promise
//! whose test was renamed or removed is a wish, and an error; one that names no test yet is a warning.

use std::collections::BTreeSet;

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const DOCUMENT: &str = "docs/architecture.md";
const HEADING: &str = "## Invariants";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(document) = tree.get(DOCUMENT) else { return Vec::new() };
    let tests: BTreeSet<&str> = tree.with_extension(&["rs"]).flat_map(|(_, text)| functions(text)).collect();
    let mut findings = Vec::new();
    let section = document.lines().skip_while(|line| !line.starts_with(HEADING)).skip(1);
    for line in section.take_while(|line| !line.starts_with("## ")) {
        let Some(row) = line.trim().strip_prefix('|') else { continue };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some(number) = cells.first().filter(|cell| cell.parse::<u32>().is_ok()) else { continue };
        let named: Vec<&str> = cells.get(2).map(|cell| code(cell)).unwrap_or_default();
        if named.is_empty() {
            findings.push(Finding::warning(DOCUMENT, format!("invariant {number} names no test")));
        }
        for name in named.iter().filter(|name| !tests.contains(*name)) {
            findings.push(Finding::error(
                DOCUMENT,
                format!("invariant {number} names `{name}`, which is no test"),
            ));
        }
    }
    findings
}

/// The names of all functions in a source file.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (_, after) = line.split_once("fn ")?;
        after.split(['(', '<']).next().map(str::trim)
    })
}

/// The spans between backticks that look like names of functions; commands and paths are left out.
fn code(cell: &str) -> Vec<&str> {
    let name = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    cell.split('`').skip(1).step_by(2).filter(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(row: &str) -> Vec<String> {
        let document = format!(
            "# A\n\n## Invariants\n\n| # | what | test |\n|---|---|---|\n{row}\n\n## Next\n| 9 | x | |\n"
        );
        let source = "//! T.\n#[test]\nfn positions_are_dense() {}\n";
        let tree = Tree::of(&[(DOCUMENT, &document), ("a/tests/log.rs", source)]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn an_invariant_with_an_existing_test_is_fine() {
        assert!(messages("| 1 | Positions are dense. | `positions_are_dense` |").is_empty());
    }

    #[test]
    fn an_invariant_without_a_test_is_pointed_at() {
        assert_eq!(messages("| 2 | Nothing is lost. | |"), ["invariant 2 names no test"]);
    }

    #[test]
    fn a_test_that_does_not_exist_is_an_error() {
        assert_eq!(
            messages("| 3 | Nothing is lost. | `nothing_is_lost` |"),
            ["invariant 3 names `nothing_is_lost`, which is no test"]
        );
    }
}
