//! Rule: nothing in the repository points into somebody's machine or workplace. Such a path works for one person,
//! and says more about him than he meant to publish.

use std::path::Path;

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Homes and private roots, and what may follow them all the same. Written in two halves, so that this file
/// does not find itself.
const PLACES: [(&str, &str, &[&str]); 4] =
    [("/ho", "me/", &["linuxbrew/"]), ("/Use", "rs/", &[]), ("/ro", "ot/", &[]), ("/wo", "rk/", &[])];

/// Names a file of words, one a line, that must not appear: a workplace keeps its own list, outside of here.
const WORDS_ENV: &str = "TIDY_PRIVATE_WORDS";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let words = std::env::var_os(WORDS_ENV).and_then(|path| std::fs::read_to_string(Path::new(&path)).ok());
    check_with(tree, &words.unwrap_or_default())
}

fn check_with(tree: &Tree, private_words: &str) -> Vec<Finding> {
    let words: Vec<&str> = private_words.lines().map(str::trim).filter(|word| !word.is_empty()).collect();
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| *path != "Cargo.lock" && *path != "LICENSE") {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(place) = place_in(line) {
                findings.push(Finding::error(
                    path,
                    format!("line {number} names a place on one machine: {place}…"),
                ));
            }
            for word in words.iter().filter(|word| line.contains(**word)) {
                findings.push(Finding::error(path, format!("line {number} says the private word {word}")));
            }
        }
    }
    findings
}

/// A place, when it starts a path: `/x` after a letter, digit or dot is the middle of a longer path or of a URL.
fn place_in(line: &str) -> Option<String> {
    PLACES.iter().find_map(|(one, two, exceptions)| {
        let place = format!("{one}{two}");
        let hit = line.match_indices(&place).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let inside = before.is_some_and(|c| c.is_alphanumeric() || "._-~/$}".contains(c));
            let after = &line[at + place.len()..];
            !inside && !exceptions.iter().any(|exception| after.starts_with(exception))
        });
        hit.then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> usize {
        check_with(&Tree::of(&[("a.md", line)]), "").len()
    }

    #[test]
    fn an_absolute_path_into_a_home_is_an_error() {
        assert_eq!(found(concat!("see /ho", "me/ann/notes")), 1);
        assert_eq!(found(concat!("(/Use", "rs/ann)")), 1);
        assert_eq!(found(concat!("`/ro", "ot/x`")), 1);
    }

    #[test]
    fn the_same_letters_inside_a_longer_path_or_address_are_fine() {
        assert_eq!(found(concat!("https://example.org/ho", "me/page")), 0);
        assert_eq!(found(concat!("examples/wo", "rk/x")), 0);
        assert_eq!(found(concat!("/ho", "me/linuxbrew/.linuxbrew")), 0);
        assert_eq!(found("/root"), 0);
    }

    #[test]
    fn the_words_of_a_workplace_come_from_outside() {
        let tree = Tree::of(&[("a.md", "the Foobar team")]);
        assert_eq!(check_with(&tree, "Foobar\n\n").len(), 1);
        assert!(check_with(&tree, "").is_empty());
    }
}
