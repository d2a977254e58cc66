//! `converge events`: the log as a story, past and live.

use crate::client::model::{Event, EventsAnswer};
use crate::client::{Client, Followed, operations};
use crate::exit::Outcome;
use crate::output::{story, view};
use crate::{console, reference};
use clap::{Args, ValueEnum};
use converge_domain::ResourceRef;
use serde_json::{Map, Value, json};

const PAGE: usize = 500;

/// Shows what happened, in order.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only this resource's; without it, everything, at contiguous positions
    #[arg(value_name = "KIND/NAME", value_parser = reference::resource)]
    reference: Option<ResourceRef>,
    /// Only what happened after this position
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    from: u64,
    /// Go on with what happens; a lost connection is made again with no gap
    #[arg(short = 'f', long)]
    follow: bool,
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: EventFormat,
}

/// `-o` of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum EventFormat {
    /// POSITION TIME KIND/NAME EVENT detail (actor)
    #[default]
    Table,
    /// One JSON object a line
    Json,
}

/// Runs it.
///
/// # Errors
/// What the server says.
pub async fn run(args: EventsArgs, client: &Client) -> Outcome {
    let filter = args.reference.as_ref().map(|target| json!({"kind": target.kind, "name": target.name}));
    let mut after = args.from;
    loop {
        let variables = json!({"filter": filter, "after": after.to_string(), "first": PAGE});
        let page = client.ask::<EventsAnswer>(operations::EVENTS, variables).await?.events;
        for event in &page.nodes {
            print(event, args.output)?;
        }
        let last = page.nodes.last().map_or(after, |event| event.position);
        let end = page.end_position.max(last);
        if !page.has_more || end == after {
            after = end;
            break;
        }
        after = end;
    }
    if !args.follow {
        return Ok(());
    }
    let mut variables = Map::new();
    variables.insert("filter".to_owned(), filter.unwrap_or(Value::Null));
    let mut follow = client.follow::<Event>(operations::FOLLOW_EVENTS, variables, after);
    loop {
        match follow.next().await? {
            Followed::Item(event) => print(&event, args.output)?,
            Followed::Interrupted { from, reason } => {
                console::note(format_args!("{reason}; going on from position {from}"));
            }
        }
    }
}

fn print(event: &Event, output: EventFormat) -> Outcome {
    match output {
        EventFormat::Table => console::print(story::line(event))?,
        EventFormat::Json => console::print(serde_json::to_string(&view::event(event))?)?,
    }
    Ok(())
}
