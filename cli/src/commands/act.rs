//! What operators do by hand: `quarantine`, `release`, `resync`, `abandon`, `confirm-prune`.

use super::delete::gone;
use crate::client::model::{ActAnswer, ActPayload};
use crate::client::operations::Operation;
use crate::client::{Client, operations};
use crate::convergence::{self, Patience, Wanted};
use crate::exit::{Failure, Outcome};
use crate::progress::Progress;
use crate::targets::TargetArgs;
use crate::{console, duration, reference};
use clap::Args;
use converge_domain::ResourceRef;
use serde_json::json;
use std::time::Duration;

/// An action on resources, with a reason that the log keeps.
#[derive(Debug, Args)]
pub struct ActArgs {
    #[command(flatten)]
    targets: TargetArgs,
    /// Why, for whoever reads the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Whether to stay until the action has had its effect.
#[derive(Debug, Args)]
struct WaitArgs {
    /// Wait for what the action leads to: Ready, or the end of what is abandoned
    #[arg(long)]
    wait: bool,
    /// How long to wait before ending with 3
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
}

/// An action after which resources are reconciled. A quarantine is none: it holds from the moment of its event.
#[derive(Debug, Args)]
pub struct ReconcileArgs {
    #[command(flatten)]
    act: ActArgs,
    #[command(flatten)]
    until: WaitArgs,
}

/// Gives up teardowns that cannot end; what they managed may leak.
#[derive(Debug, Args)]
pub struct AbandonArgs {
    #[command(flatten)]
    targets: TargetArgs,
    /// Why, for whoever looks for what leaked
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    #[command(flatten)]
    until: WaitArgs,
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
struct Words {
    done: &'static str,
    unchanged: &'static str,
}

const QUARANTINED: Words = Words { done: "quarantined", unchanged: "quarantined already" };
const RELEASED: Words = Words { done: "released", unchanged: "not in quarantine" };
const RESYNCED: Words = Words { done: "resync requested", unchanged: "resync requested already" };
const ABANDONED: Words = Words { done: "abandoned", unchanged: "gone already" };
const CONFIRMED: Words = Words { done: "prune confirmed", unchanged: "prune confirmed already" };

/// Runs `quarantine`.
///
/// # Errors
/// What the server says.
pub async fn quarantine(args: ActArgs, client: &Client) -> Outcome {
    act(operations::QUARANTINE, QUARANTINED, &args.targets, &args.reason, client).await?;
    Ok(())
}

/// Runs `release`.
///
/// # Errors
/// What the server says, and with `--wait` what [`convergence::all_ready`] says.
pub async fn release(args: ReconcileArgs, client: &Client) -> Outcome {
    reconcile(operations::RELEASE, RELEASED, args, client).await
}

/// Runs `resync`.
///
/// # Errors
/// As [`release`].
pub async fn resync(args: ReconcileArgs, client: &Client) -> Outcome {
    reconcile(operations::RESYNC, RESYNCED, args, client).await
}

async fn reconcile(operation: Operation, words: Words, args: ReconcileArgs, client: &Client) -> Outcome {
    let ReconcileArgs { act: ActArgs { targets, reason }, until } = args;
    let (wanted, position) = act(operation, words, &targets, &reason, client).await?;
    if until.wait {
        let patience = Patience::new(client, until.timeout);
        convergence::all_ready(client, &wanted, position, &patience, &mut Progress::start()).await?;
    }
    Ok(())
}

/// Runs `abandon`.
///
/// # Errors
/// What the server says, and with `--wait` what [`gone`] says.
pub async fn abandon(args: AbandonArgs, client: &Client) -> Outcome {
    let (acted, position) = act(operations::ABANDON, ABANDONED, &args.targets, &args.reason, client).await?;
    if args.until.wait {
        gone(client, &acted, position, &Patience::new(client, args.until.timeout)).await?;
    }
    Ok(())
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
    tell(&answer.acted, CONFIRMED)?;
    Ok(())
}

/// Acts, tells what was done, and returns on what and as of when.
async fn act(
    operation: Operation,
    words: Words,
    targets: &TargetArgs,
    reason: &str,
    client: &Client,
) -> Result<(Vec<Wanted>, u64), Failure> {
    let (mut done, mut position) = (Vec::new(), 0);
    for targets in targets.requests()? {
        let variables = json!({"targets": targets, "reason": reason});
        let answer: ActAnswer = client.ask(operation, variables).await?;
        tell(&answer.acted, words)?;
        position = position.max(answer.acted.position);
        done.extend(answer.acted.results.into_iter().map(|one| Wanted {
            reference: ResourceRef::new(one.kind, one.name),
            id: one.id,
            fresh: false,
        }));
    }
    if done.is_empty() {
        console::note("nothing is selected");
    }
    Ok((done, position))
}

fn tell(acted: &ActPayload, words: Words) -> std::io::Result<()> {
    for one in &acted.results {
        let word = if one.changed { words.done } else { words.unchanged };
        console::print(format_args!("{}/{} {word}", one.kind, one.name))?;
        for note in &one.notes {
            console::note(format_args!("note: {}/{}: {note}", one.kind, one.name));
        }
    }
    Ok(())
}
