//! Which resources a command is about: by name, by label, by file.

use crate::documents;
use crate::exit::Failure;
use crate::{console, reference};
use clap::Args;
use converge_domain::ResourceRef;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Names in one request; the server takes no more.
const NAMES_MAX: usize = 1_000;

/// Resources by name, by what they have in common, or by the documents that declare them.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["references", "labels", "files"])))]
pub struct TargetArgs {
    #[arg(value_name = "KIND/NAME", value_parser = reference::resource)]
    references: Vec<ResourceRef>,
    /// All resources with this label; may be repeated
    #[arg(short = 'l', long = "selector", value_name = "KEY=VALUE", value_parser = reference::label, value_delimiter = ',')]
    labels: Vec<(String, String)>,
    /// Of the selected ones, only those of this kind
    #[arg(long, value_name = "KIND", requires = "labels")]
    kind: Option<String>,
    /// The resources in these documents; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    files: Vec<PathBuf>,
    /// The type of documents that have none
    #[arg(long = "type", value_name = "TYPE")]
    default_type: Option<String>,
}

impl TargetArgs {
    /// Takes the kind versions among the names (`kind/vpc/v1`) out.
    ///
    /// # Errors
    /// For a reference to a kind without its version.
    pub fn take_kinds(&mut self) -> Result<Vec<(String, u16)>, Failure> {
        let (kinds, resources) =
            self.references.drain(..).partition(|target: &ResourceRef| target.kind == "kind");
        self.references = resources;
        let version = |target: &ResourceRef| {
            let (kind, version) = target.name.split_once("/v")?;
            Some((kind.to_owned(), version.parse().ok()?))
        };
        kinds
            .iter()
            .map(|target: &ResourceRef| {
                version(target).ok_or_else(|| {
                    Failure::usage(format_args!("{target}: say which version, as in kind/{}/v1", target.name))
                })
            })
            .collect()
    }

    /// What is asked for, as values of `Targets`, one request each. Documents go last first, as they are deleted.
    ///
    /// # Errors
    /// When a file cannot be read, or says too little.
    pub fn requests(&self) -> Result<Vec<Value>, Failure> {
        if !self.labels.is_empty() {
            let labels: Map<String, Value> =
                self.labels.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
            return Ok(vec![json!({"selector": {"labels": labels, "kind": self.kind}})]);
        }
        let mut names = self.references.clone();
        if !self.files.is_empty() {
            names.extend(from_files(&self.files, self.default_type.as_deref())?);
        }
        if names.len() > NAMES_MAX {
            let (count, requests) = (names.len(), names.len().div_ceil(NAMES_MAX));
            console::note(format_args!(
                "{count} resources exceed one request; they go in {requests} requests, each of them all or nothing"
            ));
        }
        let name = |name: &ResourceRef| json!({"kind": name.kind, "name": name.name});
        Ok(names
            .chunks(NAMES_MAX)
            .map(|names| json!({"names": names.iter().map(name).collect::<Vec<_>>()}))
            .collect())
    }
}

/// The resources among documents, last applied first.
fn from_files(files: &[PathBuf], default_type: Option<&str>) -> Result<Vec<ResourceRef>, Failure> {
    let mut targets = Vec::new();
    for document in documents::load(files, default_type)?.into_iter().rev() {
        let head = &document.head;
        match (head.type_or(default_type), &head.kind, &head.name) {
            (Some("resource"), Some(kind), Some(name)) => targets.push(ResourceRef::new(kind, name)),
            (Some("resource") | None, ..) => {
                let message = "it takes a type (or --type), a kind and a name to say which resource is meant";
                return Err(Failure::usage(format_args!("{}: {message}", document.origin)));
            }
            (Some(other), ..) => {
                console::note(format_args!(
                    "note: {}: a {other} is no resource, and left alone",
                    document.origin
                ));
            }
        }
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        targets: TargetArgs,
    }

    fn requests(words: &[&str]) -> Vec<Value> {
        Line::try_parse_from([&["x"], words].concat()).unwrap().targets.requests().unwrap()
    }

    #[test]
    fn names_and_labels_are_asked_for_as_such() {
        assert_eq!(
            requests(&["vpc/a", "vpc/b/c"]),
            [json!({"names": [{"kind": "vpc", "name": "a"}, {"kind": "vpc", "name": "b/c"}]})]
        );
        assert_eq!(
            requests(&["-l", "team=x,tier=", "--kind", "vpc"]),
            [json!({"selector": {"labels": {"team": "x", "tier": ""}, "kind": "vpc"}})]
        );
    }

    #[test]
    fn kind_versions_are_told_from_resources() {
        let mut line = Line::try_parse_from(["x", "kind/vpc/v2", "vpc/a"]).unwrap();
        assert_eq!(line.targets.take_kinds().unwrap(), [("vpc".to_owned(), 2)]);
        assert_eq!(line.targets.references, [ResourceRef::new("vpc", "a")]);
        let mut line = Line::try_parse_from(["x", "kind/vpc"]).unwrap();
        assert!(line.targets.take_kinds().is_err());
    }

    #[test]
    fn something_has_to_be_meant_and_only_in_one_way() {
        for words in [&["x"] as &[&str], &["x", "vpc/a", "-l", "a=b"], &["x", "--kind", "vpc"]] {
            assert!(Line::try_parse_from(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn many_names_are_several_requests() {
        let names: Vec<String> = (0..1_001).map(|n| format!("vpc/v{n}")).collect();
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let sizes: Vec<usize> =
            requests(&words).iter().map(|request| request["names"].as_array().unwrap().len()).collect();
        assert_eq!(sizes, [1_000, 1]);
    }

    #[test]
    fn documents_come_in_reverse_and_only_resources_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.yaml");
        let text = "{type: resource, kind: a, name: first}\n---\n{type: kind, kind: a, kind_version: 1}\n---\n\
                    {type: resource, kind: b, name: second}";
        std::fs::write(&path, text).unwrap();
        let targets = from_files(&[path], None).unwrap();
        assert_eq!(targets, [ResourceRef::new("b", "second"), ResourceRef::new("a", "first")]);
    }
}
