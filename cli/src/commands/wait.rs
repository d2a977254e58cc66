//! `converge wait`: until one resource is in a phase, or gone.

use super::get::not_found;
use crate::client::model::{Resource, ResourceAnswer};
use crate::client::{Client, operations};
use crate::convergence::{self, Patience, Waker, look};
use crate::exit::{Exit, Failure, Outcome};
use crate::{console, duration, reference};
use clap::Args;
use converge_domain::ResourceRef;
use converge_domain::resource::Phase;
use serde_json::json;
use std::time::Duration;

/// Waits until a resource is in a phase, or gone.
#[derive(Debug, Args)]
pub struct WaitArgs {
    #[arg(value_name = "KIND/NAME", value_parser = reference::resource)]
    reference: ResourceRef,
    /// What to wait for: phase=Ready (or another phase), or deleted
    #[arg(long = "for", value_name = "phase=PHASE|deleted", value_parser = wish)]
    wish: Wish,
    /// How long to wait before ending with 3
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration::parse)]
    timeout: Duration,
}

/// What somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    Phase(Phase),
    Deleted,
}

fn wish(word: &str) -> Result<Wish, String> {
    match word.split_once('=') {
        None if word.eq_ignore_ascii_case("deleted") => Ok(Wish::Deleted),
        Some(("phase", phase)) => phase.parse().map(Wish::Phase),
        _ => Err(format!("cannot wait for `{word}`; write phase=Ready or deleted")),
    }
}

/// Runs it.
///
/// # Errors
/// [`Exit::NotFound`] when a phase is waited for and there is no such resource, or no longer;
/// [`Exit::NotConverged`] when time is up.
pub async fn run(args: WaitArgs, client: &Client) -> Outcome {
    let WaitArgs { reference, wish, timeout } = args;
    let patience = Patience::new(client, timeout);
    // The position comes first: whatever happens after it is noticed, whatever happened before is seen.
    let position = convergence::position_now(client).await?;
    let variables = json!({"kind": reference.kind, "name": reference.name});
    let found = patience.ask::<ResourceAnswer>(operations::STATE, variables).await?.resource;
    let Some(mut resource) = found else {
        return if wish == Wish::Deleted { Ok(()) } else { Err(not_found(&reference)) };
    };
    let mut waker = Waker::on(client, &reference, position);
    loop {
        if let Wish::Phase(phase) = wish
            && resource.phase == phase.as_str()
        {
            console::print(format_args!("{reference} is {phase}"))?;
            return Ok(());
        }
        if patience.is_over() {
            return Err(out_of_time(&resource));
        }
        waker.wake(&patience).await;
        match (look(&patience, &resource.id, &waker.min_position()).await?, wish) {
            (Some(now), _) => resource = now,
            (None, Wish::Deleted) => {
                console::print(format_args!("{reference} is deleted"))?;
                return Ok(());
            }
            (None, Wish::Phase(_)) => {
                return Err(Failure::new(Exit::NotFound, format_args!("{reference} was deleted meanwhile")));
            }
        }
    }
}

/// Time is up, and this is how far it came.
pub fn out_of_time(resource: &Resource) -> Failure {
    let state = convergence::state_line(resource);
    Failure::new(Exit::NotConverged, format_args!("time is up; {state}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_a_phase_or_the_end() {
        assert_eq!(wish("phase=ready"), Ok(Wish::Phase(Phase::Ready)));
        assert_eq!(wish("deleted"), Ok(Wish::Deleted));
        for nonsense in ["Ready", "phase=", "phase=Happy", "deleted=true", "condition=Ready"] {
            assert!(wish(nonsense).is_err(), "{nonsense}");
        }
    }
}
