//! Rule: `docs/semantics.md` says of every rule of the lifecycle which test proves it, and the test exists. A row
//! names tests (`path::name`), or says `open: ` and what is missing, or `later: ` and what brings it.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const DOCUMENT: &str = "docs/semantics.md";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(document) = tree.get(DOCUMENT) else { return Vec::new() };
    let tests: BTreeMap<&str, BTreeSet<&str>> =
        tree.with_extension(&["rs"]).map(|(path, text)| (path, tests(text))).collect();
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for row in document.lines().filter_map(|line| line.trim().strip_prefix('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some(id) = cells.first().filter(|cell| is_id(cell)) else { continue };
        let mut fault = |message: String| findings.push(Finding::error(DOCUMENT, message));
        if !seen.insert(*id) {
            fault(format!("{id} is there twice"));
        }
        let proof = cells.get(2).copied().unwrap_or_default();
        let named: Vec<&str> =
            proof.split('`').skip(1).step_by(2).filter(|word| word.contains("::")).collect();
        let said = |word: &str| proof.split_once(word).is_some_and(|(_, what)| !what.trim().is_empty());
        if named.is_empty() && !said("open: ") && !said("later: ") {
            fault(format!("{id} names no test and says neither what is open nor what comes later"));
        }
        for name in named {
            let exists = name
                .split_once("::")
                .is_some_and(|(path, test)| tests.get(path).is_some_and(|tests| tests.contains(test)));
            if !exists {
                fault(format!("{id} names `{name}`, which is no test"));
            }
        }
    }
    findings
}

/// `2.4-07`, or `case-11`.
fn is_id(cell: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    cell.split_once('-').is_some_and(|(section, number)| {
        let known = section == "case" || section.split_once('.').is_some_and(|(a, b)| digits(a) && digits(b));
        known && digits(number)
    })
}

/// The names of the functions that are tests: the ones right below a test attribute, or inside `proptest!`.
fn tests(text: &str) -> BTreeSet<&str> {
    let mut marked = false;
    let mut names = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some((_, after)) = line.split_once("fn ").filter(|_| marked) {
            names.extend(after.split(['(', '<']).next().map(str::trim));
            marked = false;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "//! T.\nfn helper() {}\n#[tokio::test(start_paused = true)]\n#[ignore]\nasync fn it_holds() {}\n";

    fn messages(rows: &str) -> Vec<String> {
        let document = format!("# S\n\n| id | rule | proof |\n|---|---|---|\n{rows}\n");
        let tree = Tree::of(&[(DOCUMENT, &document), ("a/tests/t.rs", SOURCE)]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_row_with_an_existing_test_or_a_stated_gap_is_fine() {
        let rows = "| 2.1-01 | A. | `a/tests/t.rs::it_holds` |\n| 2.1-02 | B. | open: nobody checks it |\n\
                    | case-07 | C. | later: comes with drift |";
        assert!(messages(rows).is_empty());
    }

    #[test]
    fn a_named_test_must_be_one_and_be_where_it_is_said_to_be() {
        assert_eq!(
            messages("| 2.1-01 | A. | `a/tests/t.rs::it_held`, `b.rs::it_holds`, `a/tests/t.rs::helper` |"),
            [
                "2.1-01 names `a/tests/t.rs::it_held`, which is no test",
                "2.1-01 names `b.rs::it_holds`, which is no test",
                "2.1-01 names `a/tests/t.rs::helper`, which is no test"
            ]
        );
    }

    #[test]
    fn a_row_without_proof_says_what_is_missing() {
        let expected = ["2.4-03 names no test and says neither what is open nor what comes later"];
        assert_eq!(messages("| 2.4-03 | A. | |"), expected);
        assert_eq!(messages("| 2.4-03 | A. | open: |"), expected);
    }

    #[test]
    fn an_id_is_given_once() {
        let row = "| 2.7-01 | A. | open: x |";
        assert_eq!(messages(&format!("{row}\n{row}")), ["2.7-01 is there twice"]);
    }
}
