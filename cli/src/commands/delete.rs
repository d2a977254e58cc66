//! `converge delete`: ask for the end of resources, and wait for it if asked to.

use super::wait::out_of_time;
use crate::client::model::DeleteManyAnswer;
use crate::client::{Client, operations};
use crate::convergence::{Patience, Waker, Wanted, look};
use crate::exit::Outcome;
use crate::targets::TargetArgs;
use crate::{console, duration};
use clap::Args;
use converge_domain::ResourceRef;
use serde_json::{Value, json};
use std::time::Duration;

/// Deletes resources with everything they own, in reverse dependency order: all that are named, or none. A kind version
/// (`kind/vpc/v1`) goes when no resource needs it.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    targets: TargetArgs,
    /// Take resources in other roots that depend on these along
    #[arg(long)]
    cascade: bool,
    /// Wait until they are gone
    #[arg(long)]
    wait: bool,
    /// How long to wait before ending with 3
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
}

/// Runs it.
///
/// # Errors
/// A refusal's code; [`crate::exit::Exit::NotConverged`] when time is up before the end.
pub async fn run(mut args: DeleteArgs, client: &Client) -> Outcome {
    let kinds = args.targets.take_kinds()?;
    let (mut going, mut position) = (Vec::new(), 0);
    for targets in args.targets.requests()? {
        let variables = json!({"targets": targets, "cascade": args.cascade});
        let answer: DeleteManyAnswer = client.ask(operations::DELETE_MANY, variables).await?;
        position = position.max(answer.delete_many.position);
        for one in answer.delete_many.going {
            let reference = ResourceRef::new(one.kind, one.name);
            let already = if one.already { " already" } else { "" };
            console::print(format_args!("{reference}{already} deleting"))?;
            for note in &one.notes {
                console::note(format_args!("note: {reference}: {note}"));
            }
            going.push(Wanted { reference, id: one.id, fresh: false });
        }
    }
    if going.is_empty() && kinds.is_empty() {
        console::note("nothing is selected");
    }
    if args.wait {
        gone(client, &going, position, &Patience::new(client, args.timeout)).await?;
    }
    // Last: the resources may be what still needs them.
    for (kind, version) in &kinds {
        let variables = json!({"kind": kind, "kindVersion": version});
        let _: Value = client.ask(operations::DELETE_KIND, variables).await?;
        console::print(format_args!("kind/{kind}/v{version} deleted"))?;
    }
    Ok(())
}

/// Waits until each of them is gone: by identity, so that a namesake made anew does not count.
///
/// # Errors
/// [`crate::exit::Exit::NotConverged`] when time is up before the end.
pub async fn gone(client: &Client, going: &[Wanted], position: u64, patience: &Patience) -> Outcome {
    for Wanted { reference, id, .. } in going {
        let mut waker = Waker::on(client, reference, position);
        while let Some(resource) = look(patience, id, &waker.min_position()).await? {
            if patience.is_over() {
                return Err(out_of_time(&resource));
            }
            waker.wake(patience).await;
        }
        console::print(format_args!("{reference} deleted"))?;
    }
    Ok(())
}
