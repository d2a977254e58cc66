//! The repository's text files, in memory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

/// Built, downloaded or private; never ours to check.
const SKIPPED: [&str; 4] = ["target", ".git", "node_modules", ".converge"];

/// Longer files are data.
const BYTES_MAX: u64 = 1 << 20;

/// Paths relative to the root, with `/`, and contents. Files that are no text are left out.
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    /// Reads everything below `root`.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut files = BTreeMap::new();
        let mut directories = vec![root.to_owned()];
        while let Some(directory) = directories.pop() {
            let entries =
                std::fs::read_dir(&directory).with_context(|| format!("{}", directory.display()))?;
            for entry in entries {
                let entry = entry?;
                let (path, kind) = (entry.path(), entry.file_type()?);
                if SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                    continue;
                }
                if kind.is_dir() {
                    directories.push(path);
                } else if kind.is_file() && entry.metadata()?.len() <= BYTES_MAX {
                    let Ok(text) = std::fs::read_to_string(&path) else { continue };
                    let relative = path.strip_prefix(root).unwrap_or(&path);
                    files.insert(relative.to_string_lossy().replace('\\', "/"), text);
                }
            }
        }
        Ok(Self(files))
    }

    /// A tree for a test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    /// All files, by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose names end in one of `.extension`.
    pub(crate) fn with_extension(&self, extensions: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(move |(path, _)| {
            path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
        })
    }

    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
