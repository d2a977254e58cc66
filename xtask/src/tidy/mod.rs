//! `cargo xtask tidy`: the repository's rules that no compiler checks. Each rule is a pure function from the tree
//! of files to findings, so that each is tested on a tree of three lines.

mod dependencies;
mod headers;
mod invariants;
mod length;
mod migrations;
mod places;
mod purity;
mod semantics;
mod tree;

use std::path::Path;
use std::process::ExitCode;

use tree::Tree;

/// What a rule found in a file.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    severity: Severity,
    path: String,
    /// One sentence: what is wrong and what to do.
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    /// Said, and not held against anybody.
    Warning,
    /// Fails the run.
    Error,
}

impl Finding {
    fn error(path: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, path: path.to_owned(), message: message.into() }
    }

    fn warning(path: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, path: path.to_owned(), message: message.into() }
    }
}

/// Checks the repository at `root` and prints what was found.
///
/// # Errors
/// When the files cannot be read.
pub fn run(root: &Path, release_migrations: bool) -> anyhow::Result<ExitCode> {
    let tree = Tree::read(root)?;
    if release_migrations {
        std::fs::write(root.join(migrations::CHECKSUMS), migrations::freeze(&tree))?;
        return Ok(ExitCode::SUCCESS);
    }
    let findings = check(&tree);
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    for finding in &findings {
        let severity = match finding.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        println!("{severity}: {}: {}", finding.path, finding.message);
    }
    println!("tidy: {} files, {errors} errors, {} warnings", tree.len(), findings.len() - errors);
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(tree: &Tree) -> Vec<Finding> {
    let rules = [
        dependencies::check,
        headers::check,
        invariants::check,
        length::check,
        migrations::check,
        places::check,
        purity::check,
        semantics::check,
    ];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}
