//! Rule: the domain decides and does nothing else. It reads no clock, draws no random number and touches no file,
//! socket, thread or database, so the same command on the same state gives the same events for ever, in a replay
//! and in a simulator.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// What must not appear in code, and what to do instead.
const BANNED: [(&str, &str); 13] = [
    ("sqlx", "storage belongs to the event store"),
    ("tokio::time", "time comes in with the command"),
    ("SystemTime", "time comes in with the command"),
    ("Instant::", "time comes in with the command"),
    ("Utc::now", "time comes in with the command"),
    ("Local::now", "time comes in with the command"),
    ("rand::", "randomness comes in with the command"),
    ("new_v4", "identities come in with the command"),
    ("now_v7", "identities come in with the command"),
    ("std::fs", "files belong to the caller"),
    ("std::net", "sockets belong to the caller"),
    ("std::env", "settings come in as values"),
    ("std::thread", "the caller decides where it runs"),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let product = |path: &str| {
        path.starts_with("domain/src/") && !path.contains("/tests/") && !path.ends_with("/tests.rs")
    };
    for (path, text) in tree.with_extension(&["rs"]).filter(|(path, _)| product(path)) {
        // Tests make identities and times up as they like; by habit they come last in a file.
        let product = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        for (number, line) in (1..).zip(product.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            for (word, instead) in BANNED.iter().filter(|(word, _)| code.contains(word)) {
                findings.push(Finding::error(path, format!("line {number} uses {word}: {instead}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn the_domain_reads_no_clock() {
        assert_eq!(found("domain/src/a.rs", "let now = chrono::Utc::now();\n"), 1);
        assert_eq!(found("engine/src/a.rs", "let now = chrono::Utc::now();\n"), 0);
    }

    #[test]
    fn comments_and_tests_may_speak_of_it() {
        assert_eq!(found("domain/src/kind/tests.rs", "//! T.\nfn b() { Uuid::new_v4(); }\n"), 0);
        assert_eq!(found("domain/src/a.rs", "//! No Utc::now here.\n"), 0);
        assert_eq!(
            found("domain/src/a.rs", "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { Uuid::new_v4(); } }\n"),
            0
        );
    }
}
