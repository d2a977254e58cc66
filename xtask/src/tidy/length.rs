//! Rule: a source file is short enough to be read in one sitting.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Beyond this it is worth another look.
const LINES_WARN: usize = 500;
/// Beyond this it must be divided.
const LINES_MAX: usize = 800;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension(&["rs", "sql", "sh", "proto"]) {
        let lines = text.lines().count();
        if lines > LINES_MAX {
            findings
                .push(Finding::error(path, format!("{lines} lines; divide it, {LINES_MAX} is the limit")));
        } else if lines > LINES_WARN {
            findings.push(Finding::warning(path, format!("{lines} lines; can it be divided?")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Severity;

    fn severity(lines: usize) -> Option<Severity> {
        let text = "// x\n".repeat(lines);
        check(&Tree::of(&[("a.rs", &text), ("b.json", &text)])).pop().map(|finding| finding.severity)
    }

    #[test]
    fn long_files_are_named_and_too_long_ones_fail() {
        assert_eq!(severity(500), None);
        assert_eq!(severity(501), Some(Severity::Warning));
        assert_eq!(severity(800), Some(Severity::Warning));
        assert_eq!(severity(801), Some(Severity::Error));
    }
}
