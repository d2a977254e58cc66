//! Rule: crates depend in the direction in which data flows, so that the decision code can be read, tested and
//! simulated without the code that stores, schedules or serves.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const DOMAIN: &str = "converge-domain";
const STORE: &str = "converge-event-store";
const PROJECTIONS: &str = "converge-projections";
const ENGINE: &str = "converge-engine";
const PROTOCOL: &str = "converge-protocol";
const BROKER: &str = "converge-broker";
const SDK: &str = "converge-sdk";
const BUILTIN: &str = "converge-builtin";
const GRAPHQL: &str = "converge-graphql";
const EMBEDDED: &str = "embedded-postgres";

/// Folder → the crates of ours it may use. A crate that is not listed is an error, so that a new one gets its
/// place here by a decision.
const ALLOWED: [(&str, &[&str]); 14] = [
    ("domain", &[]),
    ("event-store", &[DOMAIN]),
    ("projections", &[DOMAIN, STORE]),
    ("engine", &[DOMAIN, STORE, PROJECTIONS]),
    ("workers/protocol", &[]),
    ("workers/broker", &[DOMAIN, STORE, PROJECTIONS, ENGINE, PROTOCOL]),
    ("workers/sdk-rust", &[PROTOCOL]),
    ("workers/builtin", &[SDK, PROTOCOL]),
    ("graphql", &[DOMAIN, STORE, PROJECTIONS, ENGINE]),
    ("cli", &[DOMAIN, STORE, PROJECTIONS, ENGINE, PROTOCOL, BROKER, SDK, BUILTIN, GRAPHQL, EMBEDDED]),
    ("embedded-postgres", &[]),
    (
        "replay-tests",
        &[DOMAIN, STORE, PROJECTIONS, ENGINE, PROTOCOL, BROKER, SDK, BUILTIN, GRAPHQL, EMBEDDED],
    ),
    ("examples/landing-zone", &[SDK]),
    ("xtask", &[EMBEDDED]),
];

/// What tests alone may use besides: a broker is tested with a real worker, a built-in provider with the documents that
/// the domain reads, the example's program with the provider that runs it.
const ALLOWED_IN_TESTS: [(&str, &str); 3] =
    [("workers/broker", SDK), ("workers/builtin", DOMAIN), ("examples/landing-zone", BUILTIN)];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let Some(folder) = path.strip_suffix("/Cargo.toml") else { continue };
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == folder) else {
            findings.push(Finding::error(
                path,
                "a new crate: give it its place in xtask/src/tidy/dependencies.rs",
            ));
            continue;
        };
        for (table, dependency) in dependencies_of(text) {
            // Tests may start a server wherever they are; everything else holds for tests too.
            let for_tests = table == "dev-dependencies"
                && (dependency == EMBEDDED || ALLOWED_IN_TESTS.contains(&(folder, dependency)));
            if ours(dependency) && !allowed.contains(&dependency) && !for_tests {
                let message =
                    format!("{folder} may not depend on {dependency}: it is against the flow of data");
                findings.push(Finding::error(path, message));
            }
        }
    }
    findings
}

fn ours(dependency: &str) -> bool {
    dependency.starts_with("converge") || dependency == EMBEDDED
}

/// `(table, name)` for every dependency. Reads the few forms that this repository uses (`name.workspace = true`,
/// `name = …` and `[dependencies.name]`, for any target), which needs no parser.
fn dependencies_of(manifest: &str) -> Vec<(&'static str, &str)> {
    const TABLES: [&str; 3] = ["dev-dependencies", "build-dependencies", "dependencies"];
    let mut found = Vec::new();
    let mut table = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table =
                TABLES.into_iter().find(|table| header == *table || header.ends_with(&format!(".{table}")));
            for table in TABLES {
                let named = header.strip_prefix(table).and_then(|rest| rest.strip_prefix('.'));
                found.extend(named.map(|name| (table, name)));
            }
        } else if let (Some(table), false) = (table, line.is_empty() || line.starts_with('#')) {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            found.push((table, name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_dependency_along_the_flow_is_fine() {
        let manifest = "[dependencies]\nconverge-domain.workspace = true\nserde.workspace = true\n";
        assert!(messages(&[("event-store/Cargo.toml", manifest)]).is_empty());
    }

    #[test]
    fn a_dependency_against_the_flow_is_an_error_in_every_spelling() {
        for manifest in [
            "[dependencies]\nconverge-engine.workspace = true\n",
            "[dependencies]\nconverge-engine = { path = \"../engine\" }\n",
            "[dependencies.converge-engine]\nworkspace = true\n",
            "[target.'cfg(unix)'.dependencies]\nconverge-engine = \"1\"\n",
            "[dev-dependencies]\nconverge-engine.workspace = true\n",
        ] {
            assert_eq!(messages(&[("projections/Cargo.toml", manifest)]).len(), 1, "{manifest}");
        }
    }

    #[test]
    fn the_sdk_knows_the_protocol_alone() {
        let manifest =
            "[dependencies]\nconverge-protocol.workspace = true\nconverge-domain.workspace = true\n";
        assert_eq!(
            messages(&[("workers/sdk-rust/Cargo.toml", manifest)]),
            ["workers/sdk-rust may not depend on converge-domain: it is against the flow of data"]
        );
    }

    #[test]
    fn tests_may_start_a_server_anywhere_and_products_may_not() {
        let tests = "[dev-dependencies]\nembedded-postgres.workspace = true\n";
        assert!(messages(&[("engine/Cargo.toml", tests)]).is_empty());
        let product = "[dependencies]\nembedded-postgres.workspace = true\n";
        assert_eq!(messages(&[("engine/Cargo.toml", product)]).len(), 1);
    }

    #[test]
    fn a_broker_is_tested_with_a_real_worker_and_built_without() {
        let tests = "[dev-dependencies]\nconverge-sdk.workspace = true\n";
        assert!(messages(&[("workers/broker/Cargo.toml", tests)]).is_empty());
        let product = "[dependencies]\nconverge-sdk.workspace = true\n";
        assert_eq!(messages(&[("workers/broker/Cargo.toml", product)]).len(), 1);
    }

    #[test]
    fn an_unknown_crate_needs_a_place() {
        assert_eq!(messages(&[("attic/Cargo.toml", "[package]\n")]).len(), 1);
    }
}
