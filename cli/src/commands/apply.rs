//! `converge apply`: declare what should be, and wait for it if asked to.

use crate::client::model::{ApplyAnswer, ApplyPayload, ApplyResult};
use crate::client::{Client, operations};
use crate::convergence::{self, Patience, Wanted};
use crate::documents::{self, Document};
use crate::exit::Outcome;
use crate::progress::Progress;
use crate::{console, duration};
use clap::{Args, ValueEnum};
use converge_domain::ResourceRef;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Applies documents: kinds first, resources last, each request all or nothing.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// A file, a folder of *.yaml, *.yml and *.json, or - for stdin; may be repeated
    #[arg(short = 'f', long = "filename", required = true, value_name = "FILE|DIR|-")]
    files: Vec<PathBuf>,
    /// The type of documents that have none
    #[arg(long = "type", value_name = "TYPE")]
    default_type: Option<String>,
    /// Wait until every applied resource is Ready; end with 1 as soon as one has failed for good
    #[arg(long)]
    wait: bool,
    /// How long to wait before ending with 3
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: ApplyFormat,
}

/// `-o` of apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum ApplyFormat {
    /// KIND/NAME verb
    #[default]
    Table,
    /// One JSON document: positions and results
    Json,
    /// KIND/NAME
    Name,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Variables<'a> {
    documents: Vec<&'a RawValue>,
    default_type: Option<&'a str>,
}

/// Runs it.
///
/// # Errors
/// What the documents, the server and the wait say.
pub async fn run(args: ApplyArgs, client: &Client) -> Outcome {
    let default_type = args.default_type.as_deref();
    let documents = documents::load(&args.files, default_type)?;
    let payloads = send(client, documents, default_type, |payload| match args.output {
        ApplyFormat::Json => Ok(()),
        ApplyFormat::Table => payload.results.iter().try_for_each(|result| {
            let subject = subject(result);
            console::print(format_args!("{subject} {}", painted(&result.verb)))
        }),
        ApplyFormat::Name => payload.results.iter().try_for_each(|result| console::print(subject(result))),
    })
    .await?;
    if args.output == ApplyFormat::Json {
        console::print(serde_json::to_string_pretty(&view(&payloads))?)?;
    }
    if args.wait {
        let position = payloads.iter().map(|payload| payload.position).max().unwrap_or_default();
        let wanted = wanted(&payloads);
        let patience = Patience::new(client, args.timeout);
        convergence::all_ready(client, &wanted, position, &patience, &mut Progress::start()).await?;
        console::note(format_args!("{} Ready", counted(wanted.len(), "resource")));
    }
    Ok(())
}

/// Sends documents in as few requests as the limits allow; `each` sees every answer as it comes, so that what
/// was stored is told even if a later request is refused.
///
/// # Errors
/// The first refusal; requests before it stay applied, and the message says so.
pub async fn send(
    client: &Client,
    documents: Vec<Document>,
    default_type: Option<&str>,
    each: impl Fn(&ApplyPayload) -> std::io::Result<()>,
) -> Result<Vec<ApplyPayload>, crate::exit::Failure> {
    let count = documents.len();
    let runs = documents::split(documents)?;
    if runs.len() > 1 {
        console::note(format_args!(
            "{count} documents exceed one request; they go in {}, each of them all or nothing",
            counted(runs.len(), "request")
        ));
    }
    let mut payloads = Vec::new();
    for run in &runs {
        let documents = run.iter().map(|document| &*document.json).collect();
        let asked = client.ask(operations::APPLY, Variables { documents, default_type });
        let answer: ApplyAnswer = match asked.await {
            Ok(answer) => answer,
            Err(error) => {
                if !payloads.is_empty() {
                    let done = payloads.len();
                    console::note(format_args!("{} of {} requests are applied", done, runs.len()));
                }
                return Err(error.into());
            }
        };
        each(&answer.apply)?;
        for result in &answer.apply.results {
            for warning in &result.warnings {
                console::note(format_args!("warning: {}: {warning}", subject(result)));
            }
        }
        payloads.push(answer.apply);
    }
    Ok(payloads)
}

/// The resources among what was applied.
pub fn wanted(payloads: &[ApplyPayload]) -> Vec<Wanted> {
    let results = payloads.iter().flat_map(|payload| &payload.results);
    let resources = results.filter(|result| result.document_type == "resource");
    resources
        .map(|result| Wanted {
            id: result.id.clone(),
            reference: ResourceRef::new(&result.kind, &result.name),
            fresh: result.verb == "created",
        })
        .collect()
}

/// A resource by its kind, anything else by its type.
pub fn subject(result: &ApplyResult) -> String {
    let kind = if result.document_type == "resource" { &result.kind } else { &result.document_type };
    format!("{kind}/{}", result.name)
}

fn painted(verb: &str) -> String {
    match verb {
        "unchanged" => console::paint(console::Colour::Grey, verb),
        _ => console::paint(console::Colour::Green, verb),
    }
}

fn view(payloads: &[ApplyPayload]) -> Value {
    let results = payloads.iter().flat_map(|payload| &payload.results).map(|result| {
        json!({
            "type": result.document_type, "kind": result.kind, "name": result.name, "id": result.id,
            "verb": result.verb, "revision": result.revision, "generation": result.generation,
            "warnings": result.warnings,
        })
    });
    let position = payloads.last().map_or(0, |payload| payload.position);
    json!({"position": position, "results": results.collect::<Vec<_>>()})
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
