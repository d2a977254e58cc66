//! From paths to documents.

use super::{Document, DocumentError, Head, json, yaml};
use serde_json::value::RawValue;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One file, or stdin: the most this client holds in memory at once.
pub(super) const INPUT_BYTES_MAX: u64 = 512 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
    /// JSON if it is JSON, else YAML.
    Guess,
}

/// Reads every document of `paths`: a file, a folder's `*.yaml`, `*.yml` and `*.json` in the order of their
/// names, or `-` for stdin. The documents come in the order in which they must be applied: kinds,
/// provider configs, bindings, resources, and as written within each; `default_type` is the type of those without one.
///
/// # Errors
/// See [`DocumentError`]. Nothing at all is an error: an empty folder is a mistyped one.
pub fn load(paths: &[PathBuf], default_type: Option<&str>) -> Result<Vec<Document>, DocumentError> {
    let mut documents = Vec::new();
    for path in paths {
        let before = documents.len();
        if path.as_os_str() == "-" {
            read(std::io::stdin().lock(), "stdin", Format::Guess, &mut documents)?;
        } else if path.is_dir() {
            for file in files(path)? {
                read_file(&file, &mut documents)?;
            }
        } else {
            read_file(path, &mut documents)?;
        }
        if documents.len() == before {
            return Err(DocumentError::Empty(path.display().to_string()));
        }
    }
    documents.sort_by_key(|document| rank(document.head.type_or(default_type)));
    Ok(documents)
}

/// Documents from text that is part of the program.
///
/// # Errors
/// When the text is neither JSON nor YAML.
pub fn from_text(text: &str, origin: &str) -> Result<Vec<Document>, DocumentError> {
    let mut documents = Vec::new();
    read(text.as_bytes(), origin, Format::Guess, &mut documents)?;
    Ok(documents)
}

/// A later rank may name what an earlier one brings.
fn rank(document_type: Option<&str>) -> u8 {
    match document_type {
        Some("kind" | "manifest" | "crd") => 0,
        Some("providerconfig") => 1,
        Some("reactorbinding") => 2,
        _ => 3,
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, DocumentError> {
    let unreadable = |error: std::io::Error| DocumentError::Unreadable {
        origin: folder.display().to_string(),
        reason: error.to_string(),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let known = path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml" || ext == "json");
        if known && !hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read_file(path: &Path, documents: &mut Vec<Document>) -> Result<(), DocumentError> {
    let origin = path.display().to_string();
    let file = File::open(path)
        .map_err(|error| DocumentError::Unreadable { origin: origin.clone(), reason: error.to_string() })?;
    let format = match path.extension().and_then(|ext| ext.to_str()) {
        Some("json") => Format::Json,
        Some("yaml" | "yml") => Format::Yaml,
        _ => Format::Guess,
    };
    read(file, &origin, format, documents)
}

fn read(
    input: impl Read,
    origin: &str,
    format: Format,
    documents: &mut Vec<Document>,
) -> Result<(), DocumentError> {
    let malformed = |reason: String| DocumentError::Malformed { origin: origin.to_owned(), reason };
    let mut bytes = Vec::new();
    input.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| DocumentError::Unreadable {
        origin: origin.to_owned(),
        reason: error.to_string(),
    })?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(DocumentError::TooLarge { origin: origin.to_owned() });
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| malformed(error.to_string()))?;
    let text = text.trim_start_matches('\u{feff}');
    let texts = parse(text, format).map_err(malformed)?;
    let several = texts.len() > 1;
    for (index, json) in texts.into_iter().enumerate() {
        let head: Head = serde_json::from_str(json.get()).map_err(|error| malformed(error.to_string()))?;
        let origin = if several { format!("{origin}#{}", index + 1) } else { origin.to_owned() };
        documents.push(Document { json, head, origin });
    }
    Ok(())
}

fn parse(text: &str, format: Format) -> Result<Vec<Box<RawValue>>, String> {
    let looks_like_json = text.trim_start().starts_with('{');
    match format {
        Format::Json => json::documents(text),
        // JSON is YAML, but read as JSON it keeps its text; what merely begins like JSON is left to YAML.
        Format::Yaml if looks_like_json => json::documents(text).or_else(|_| yaml::documents(text)),
        Format::Guess if looks_like_json => {
            json::documents(text).or_else(|error| yaml::documents(text).map_err(|_| error))
        }
        Format::Yaml | Format::Guess => yaml::documents(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn names(documents: &[Document]) -> Vec<&str> {
        documents.iter().map(|document| document.head.name.as_deref().unwrap_or("-")).collect()
    }

    #[test]
    fn a_folder_is_read_in_order_and_kinds_come_before_what_uses_them() {
        let folder = folder(&[
            ("b.yaml", "{type: resource, name: b1}\n---\n{type: providerconfig, name: b2}"),
            ("a.json", r#"{"type": "resource", "name": "a"}"#),
            ("z.yml", "{type: kind, name: z}"),
            ("notes.txt", "not a document"),
            (".hidden.yaml", "{"),
        ]);
        let documents = load(&[folder.path().to_owned()], None).unwrap();
        assert_eq!(names(&documents), ["z", "b2", "a", "b1"]);
        assert!(documents[1].origin.ends_with("b.yaml#2"));
    }

    #[test]
    fn the_default_type_orders_documents_without_one() {
        let folder = folder(&[("a.yaml", "{type: resource, name: r}\n---\n{name: k}")]);
        let paths = [folder.path().join("a.yaml")];
        assert_eq!(names(&load(&paths, Some("kind")).unwrap()), ["k", "r"]);
        assert_eq!(names(&load(&paths, None).unwrap()), ["r", "k"]);
    }

    #[test]
    fn json_in_a_yaml_file_keeps_its_text() {
        let folder = folder(&[("a.yaml", r#"{"a": 1.10, "b": 1E2}"#)]);
        let documents = load(&[folder.path().to_owned()], None).unwrap();
        assert_eq!(documents[0].json.get(), r#"{"a": 1.10, "b": 1E2}"#);
    }

    #[test]
    fn a_missing_file_an_empty_folder_and_broken_text_are_named() {
        let folder = folder(&[("bad.json", "{\"a\": }"), ("latin.yaml", "")]);
        let message = |path: PathBuf| load(&[path], None).unwrap_err().to_string();
        assert!(message(folder.path().join("none.yaml")).contains("none.yaml: "));
        assert!(message(folder.path().join("latin.yaml")).ends_with("no documents found"));
        let bad = message(folder.path().join("bad.json"));
        assert!(bad.contains("bad.json: ") && bad.contains("line 1 column 7"), "{bad}");
    }
}
