//! `converge delete`: ask for the end of resources, and wait for it if asked to.

use super::wait::out_of_time;
use crate::client::model::{DeleteAnswer, DeletePayload};
use crate::client::{Client, operations};
use crate::convergence::{Patience, Waker, look};
use crate::documents;
use crate::exit::{Failure, Outcome};
use crate::{console, duration, reference};
use clap::Args;
use converge_domain::ResourceRef;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Deletes resources with everything they own, in reverse dependency order.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["references", "files"])))]
pub struct DeleteArgs {
    #[arg(value_name = "KIND/NAME", value_parser = reference::resource)]
    references: Vec<ResourceRef>,
    /// Delete the resources in these documents; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    files: Vec<PathBuf>,
    /// The type of documents that have none
    #[arg(long = "type", value_name = "TYPE")]
    default_type: Option<String>,
    /// Wait until they are gone
    #[arg(long)]
    wait: bool,
    /// How long to wait before ending with 3
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
}

/// Runs it. Every resource is tried, whatever became of those before it.
///
/// # Errors
/// The first refusal's code; [`crate::exit::Exit::NotConverged`] when time is up before the end.
pub async fn run(args: DeleteArgs, client: &Client) -> Outcome {
    let mut targets = args.references;
    if !args.files.is_empty() {
        targets.extend(from_files(&args.files, args.default_type.as_deref())?);
    }
    let mut failure: Option<Failure> = None;
    let mut going = Vec::new();
    for target in targets {
        let variables = json!({"kind": target.kind, "name": target.name});
        match client.ask::<DeleteAnswer>(operations::DELETE, variables).await {
            Ok(DeleteAnswer { delete }) => {
                let already = if delete.already { " already" } else { "" };
                console::print(format_args!("{target}{already} deleting"))?;
                for note in &delete.notes {
                    console::note(format_args!("note: {target}: {note}"));
                }
                going.push((target, delete));
            }
            Err(error) => {
                let refused = Failure::from(error);
                match &failure {
                    None => failure = Some(refused),
                    Some(_) => console::note(format_args!("error: {refused}")),
                }
            }
        }
    }
    if args.wait {
        gone(client, &going, &Patience::new(client, args.timeout)).await?;
    }
    failure.map_or(Ok(()), Err)
}

/// The resources among documents, last applied first.
fn from_files(files: &[PathBuf], default_type: Option<&str>) -> Result<Vec<ResourceRef>, Failure> {
    let mut targets = Vec::new();
    for document in documents::load(files, default_type)?.into_iter().rev() {
        let head = &document.head;
        match (head.type_or(default_type), &head.kind, &head.name) {
            (Some("resource"), Some(kind), Some(name)) => targets.push(ResourceRef::new(kind, name)),
            (Some("resource") | None, ..) => {
                let message = "it takes a type (or --type), a kind and a name to say what to delete";
                return Err(Failure::usage(format_args!("{}: {message}", document.origin)));
            }
            (Some(other), ..) => {
                console::note(format_args!("note: {}: a {other} is not deleted", document.origin));
            }
        }
    }
    Ok(targets)
}

/// Waits until each of them is gone: by identity, so that a namesake made anew does not count.
async fn gone(client: &Client, going: &[(ResourceRef, DeletePayload)], patience: &Patience) -> Outcome {
    for (target, deleted) in going {
        let mut waker = Waker::on(client, target, deleted.position);
        while let Some(resource) = look(patience, &deleted.id, &waker.min_position()).await? {
            if patience.is_over() {
                return Err(out_of_time(&resource));
            }
            waker.wake(patience).await;
        }
        console::print(format_args!("{target} deleted"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_deleted_in_reverse_and_only_resources_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.yaml");
        let text = "{type: resource, kind: a, name: first}\n---\n{type: kind, kind: a, kind_version: 1}\n---\n\
                    {type: resource, kind: b, name: second}";
        std::fs::write(&path, text).unwrap();
        let targets = from_files(&[path], None).unwrap();
        assert_eq!(targets, [ResourceRef::new("b", "second"), ResourceRef::new("a", "first")]);
    }
}
