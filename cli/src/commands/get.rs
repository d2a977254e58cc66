//! `converge get`: one thing, or all of a type.

use super::list::{self, Show};
use crate::client::Client;
use crate::client::model::ResourceAnswer;
use crate::client::operations;
use crate::console;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Format, view, yaml};
use crate::reference::{self, Target};
use clap::Args;
use converge_domain::ResourceRef;
use serde_json::json;

/// Shows one thing, or all of a type.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// A type (vpc, kind, providerconfig, resource), or one thing of it (vpc/NAME, kind/vpc/v1)
    #[arg(value_name = "TYPE[/NAME]|KIND/NAME", value_parser = reference::target)]
    target: Target,
    #[command(flatten)]
    show: Show,
}

/// Runs it.
///
/// # Errors
/// [`Exit::NotFound`] when one thing was asked for and is not there.
pub async fn run(args: GetArgs, client: &Client) -> Outcome {
    match args.target {
        Target::Resource(reference) if !args.show.watches() => one(client, &reference, &args.show).await,
        target => list::show(client, target, &args.show).await,
    }
}

async fn one(client: &Client, reference: &ResourceRef, show: &Show) -> Outcome {
    let variables = json!({"kind": reference.kind, "name": reference.name});
    let answer: ResourceAnswer = client.ask(operations::RESOURCE, variables).await?;
    let resource = answer.resource.ok_or_else(|| not_found(reference))?;
    match show.output() {
        Format::Json => console::print(serde_json::to_string_pretty(&view::resource(&resource))?)?,
        Format::Yaml => console::print(yaml(&view::resource(&resource))?)?,
        Format::Name => console::print(reference)?,
        Format::Table | Format::Wide => {
            let kind = Some(resource.kind.as_str());
            let mut table = list::ResourceTable::new(client, kind, show.output() == Format::Wide).await?;
            table.print(std::slice::from_ref(&resource))?;
        }
    }
    Ok(())
}

/// There is no such resource.
pub fn not_found(reference: &ResourceRef) -> Failure {
    Failure::new(Exit::NotFound, format_args!("{reference} does not exist"))
}
