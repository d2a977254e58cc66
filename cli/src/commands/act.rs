//! What operators do by hand: `quarantine`, `release`, `resync`, `abandon`, `confirm-prune`.

use crate::client::model::{ActAnswer, ActPayload};
use crate::client::operations::Operation;
use crate::client::{Client, operations};
use crate::exit::Outcome;
use crate::targets::TargetArgs;
use crate::{console, reference};
use clap::Args;
use converge_domain::ResourceRef;
use serde_json::json;

/// An action on resources, with a reason that the log keeps.
#[derive(Debug, Args)]
pub struct ActArgs {
    #[command(flatten)]
    targets: TargetArgs,
    /// Why, for whoever reads the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Gives up teardowns that cannot end; what they managed may leak.
#[derive(Debug, Args)]
pub struct AbandonArgs {
    #[command(flatten)]
    targets: TargetArgs,
    /// Why, for whoever looks for what leaked
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
}

/// Lets the removals happen that the condition `PruneHeld` shows.
#[derive(Debug, Args)]
pub struct ConfirmPruneArgs {
    #[arg(value_name = "KIND/NAME", value_parser = reference::resource)]
    reference: ResourceRef,
    /// The digest that the condition shows: the confirmation is for exactly these removals
    #[arg(long, value_name = "DIGEST")]
    digest: String,
    /// Why, for whoever reads the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// The words for what was done, and for what was so already.
#[derive(Clone, Copy)]
pub struct Words {
    pub done: &'static str,
    pub unchanged: &'static str,
}

/// Quarantines.
pub const QUARANTINED: Words = Words { done: "quarantined", unchanged: "quarantined already" };
/// Ends quarantines.
pub const RELEASED: Words = Words { done: "released", unchanged: "not in quarantine" };
/// Asks for another look.
pub const RESYNCED: Words = Words { done: "resync requested", unchanged: "resync requested already" };
const ABANDONED: Words = Words { done: "abandoned", unchanged: "gone already" };
const CONFIRMED: Words = Words { done: "prune confirmed", unchanged: "prune confirmed already" };

/// Runs one of the actions that need no more than a reason.
///
/// # Errors
/// What the server says.
pub async fn run(operation: Operation, words: Words, args: ActArgs, client: &Client) -> Outcome {
    act(operation, words, &args.targets, &args.reason, client).await
}

/// Runs `abandon`.
///
/// # Errors
/// What the server says.
pub async fn abandon(args: AbandonArgs, client: &Client) -> Outcome {
    act(operations::ABANDON, ABANDONED, &args.targets, &args.reason, client).await
}

/// Runs `confirm-prune`.
///
/// # Errors
/// What the server says.
pub async fn confirm_prune(args: ConfirmPruneArgs, client: &Client) -> Outcome {
    let ConfirmPruneArgs { reference, digest, reason } = args;
    let variables =
        json!({"kind": reference.kind, "name": reference.name, "digest": digest, "reason": reason});
    let answer: ActAnswer = client.ask(operations::CONFIRM_PRUNE, variables).await?;
    tell(answer.acted, CONFIRMED)
}

async fn act(
    operation: Operation,
    words: Words,
    targets: &TargetArgs,
    reason: &str,
    client: &Client,
) -> Outcome {
    for targets in targets.requests()? {
        let variables = json!({"targets": targets, "reason": reason});
        let answer: ActAnswer = client.ask(operation, variables).await?;
        tell(answer.acted, words)?;
    }
    Ok(())
}

fn tell(acted: ActPayload, words: Words) -> Outcome {
    if acted.results.is_empty() {
        console::note("nothing is selected");
    }
    for one in acted.results {
        let word = if one.changed { words.done } else { words.unchanged };
        console::print(format_args!("{}/{} {word}", one.kind, one.name))?;
        for note in &one.notes {
            console::note(format_args!("note: {}/{}: {note}", one.kind, one.name));
        }
    }
    Ok(())
}
