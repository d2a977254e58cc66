//! `converge describe`: everything about one resource that helps to understand it.

use super::get::not_found;
use crate::client::model::{FieldFlow, Resource, ResourceAnswer, ResourcesAnswer};
use crate::client::{Client, ClientError, operations};
use crate::console::{self, paint_phase};
use crate::exit::Outcome;
use crate::output::table::render;
use crate::output::{age, story};
use crate::progress::PhaseCounts;
use crate::reference;
use clap::Args;
use converge_domain::ResourceRef;
use converge_domain::resource::Phase;
use serde_json::{Value, json};
use std::fmt::Write;

const EVENTS: usize = 12;
/// Unready children that are named.
const CHILDREN_NAMED: usize = 20;
const CHILDREN_PAGE: usize = 500;
/// Pages of children that are counted; of more it says so.
const CHILDREN_PAGES_MAX: usize = 20;

/// Shows one resource with its conditions, what it waits for, its children and recent events.
#[derive(Debug, Args)]
pub struct DescribeArgs {
    #[arg(value_name = "KIND/NAME", value_parser = reference::resource)]
    reference: ResourceRef,
}

/// Runs it.
///
/// # Errors
/// When there is no such resource, and what the server says.
pub async fn run(args: DescribeArgs, client: &Client) -> Outcome {
    let reference = args.reference;
    let variables = json!({"kind": reference.kind, "name": reference.name, "events": EVENTS});
    let answer: ResourceAnswer = client.ask(operations::DESCRIBE, variables).await?;
    let resource = answer.resource.ok_or_else(|| not_found(&reference))?;
    let children = Children::of(client, &resource.id).await?;
    console::print(text(&resource, &children).trim_end())?;
    Ok(())
}

/// The direct children, as much of them as fits on a page.
#[derive(Default)]
struct Children {
    counts: PhaseCounts,
    complete: bool,
    unready: Vec<Resource>,
}

impl Children {
    async fn of(client: &Client, owner: &str) -> Result<Self, ClientError> {
        let mut children = Self::default();
        let mut after = None;
        for _ in 0..CHILDREN_PAGES_MAX {
            let filter = json!({"owner": owner});
            let page = page(client, &filter, CHILDREN_PAGE, after.as_deref(), false).await?.resources;
            page.nodes.iter().for_each(|child| children.counts.add(&child.phase, 1));
            after = page.page_info.end_cursor;
            if !page.page_info.has_next_page || after.is_none() {
                children.complete = true;
                break;
            }
        }
        if children.counts.total() > children.counts.of("Ready") || !children.complete {
            // One question per phase, the gravest first: what failed must not hide behind what waits.
            for phase in Phase::ALL.into_iter().filter(|phase| *phase != Phase::Ready) {
                let left = CHILDREN_NAMED - children.unready.len();
                if left == 0 {
                    break;
                }
                let filter = json!({"owner": owner, "phase": [phase.as_str()]});
                children.unready.extend(page(client, &filter, left, None, true).await?.resources.nodes);
            }
        }
        Ok(children)
    }
}

async fn page(
    client: &Client,
    filter: &Value,
    first: usize,
    after: Option<&str>,
    wide: bool,
) -> Result<ResourcesAnswer, ClientError> {
    let variables = json!({
        "filter": filter, "first": first, "after": after, "wide": wide, "columns": false, "full": false,
    });
    client.ask(operations::RESOURCES, variables).await
}

/// Writes into a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {
        let _ = writeln!($out, $($arg)*);
    };
}

fn text(resource: &Resource, children: &Children) -> String {
    let mut out = String::new();
    put!(out, "Name:         {}", resource.name);
    put!(out, "Kind:         {}/v{}", resource.kind, resource.kind_version);
    put!(out, "Id:           {}", resource.id);
    put!(out, "Phase:        {}", paint_phase(&resource.phase));
    if !resource.why.is_empty() {
        put!(out, "Why:          {}", resource.why);
    }
    put!(out, "Labels:       {}", labels(&resource.labels));
    put!(
        out,
        "Generation:   {} (synced {}), revision {}, epoch {}",
        resource.generation,
        resource.synced_generation,
        resource.revision,
        resource.epoch
    );
    if let Some(owner) = &resource.owner {
        put!(out, "Owner:        {}/{}", owner.kind, owner.name);
    }
    if let Some(config) = &resource.provider_config_ref {
        put!(out, "Config:       {config}");
    }
    if resource.deletion_protection {
        put!(out, "Protection:   deletion protection is on");
    }
    if let Some(reason) = &resource.quarantine_reason {
        let reason = if reason.is_empty() { "no reason was given" } else { reason };
        put!(out, "Quarantine:   {reason}; `converge release {}/{}` ends it", resource.kind, resource.name);
    }
    if let Some(until) = resource.kept_until {
        put!(out, "Kept until:   {} ({}); its composer dropped it", age::instant(until), age::until(until));
    }
    if let Some(created_at) = resource.created_at {
        put!(out, "Created:      {} ({} ago)", age::instant(created_at), age::ago(created_at));
    }
    put!(out, "Spec:{}", block(&resource.spec));
    if resource.effective_spec != resource.spec {
        put!(out, "Effective spec:{}", block(&resource.effective_spec));
    }
    put!(out, "Status:{}", block(&resource.status));
    conditions(&mut out, resource);
    work(&mut out, resource);
    edges(&mut out, resource);
    describe_children(&mut out, children);
    if !resource.events.is_empty() {
        put!(out, "Events:");
        for event in &resource.events {
            put!(out, "  {}", story::line(event).trim_start());
        }
    }
    out
}

fn labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let shown: Vec<String> = labels.map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// Lines of a spec or status that a description shows: what comes after them should still be on the screen.
const BLOCK_LINES_MAX: usize = 40;

/// A small value behind its title, a larger one below it.
fn block(value: &Value) -> String {
    let empty = match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if empty {
        return " {}".to_owned();
    }
    let text = crate::output::yaml(value).unwrap_or_else(|_| value.to_string());
    let mut block =
        text.lines().take(BLOCK_LINES_MAX).fold(String::new(), |block, line| block + "\n  " + line);
    let more = text.lines().count().saturating_sub(BLOCK_LINES_MAX);
    if more > 0 {
        block.push_str(&format!("\n  … and {more} more lines; `get -o yaml` shows all"));
    }
    block
}

fn conditions(out: &mut String, resource: &Resource) {
    if resource.conditions.is_empty() {
        return;
    }
    put!(out, "Conditions:");
    let rows = resource.conditions.iter().map(|condition| {
        vec![
            condition.condition_type.clone(),
            condition.status.clone(),
            condition.reason.clone(),
            age::ago(condition.last_transition),
            condition.message.clone(),
        ]
    });
    indent(out, &render(&["type", "status", "reason", "since", "message"], rows.collect()));
    if resource.conditions.iter().any(|condition| condition.condition_type == "PruneHeld") {
        let name = format!("{}/{}", resource.kind, resource.name);
        put!(out, "  to let it happen: converge confirm-prune {name} --digest DIGEST");
    }
}

fn indent(out: &mut String, lines: &str) {
    for line in lines.lines() {
        put!(out, "  {line}");
    }
}

fn work(out: &mut String, resource: &Resource) {
    if let Some(claim) = &resource.claim {
        let deadline =
            claim.deadline_at.map(|at| format!(", deadline {}", age::until(at))).unwrap_or_default();
        put!(
            out,
            "Running:      {} on {} for {} (epoch {}{deadline})",
            claim.reaction,
            claim.worker,
            age::ago(claim.claimed_at),
            claim.epoch
        );
    }
    if let Some(failure) = &resource.last_failure {
        put!(
            out,
            "Last failure: {} attempt {}, {} ago{}: {}",
            failure.reaction,
            failure.attempt,
            age::ago(failure.at),
            if failure.terminal { ", terminal" } else { "" },
            failure.message
        );
    }
    if let Some(retry_at) = resource.retry_at {
        put!(out, "Next retry:   {} ({})", age::until(retry_at), age::instant(retry_at));
    }
}

fn edges(out: &mut String, resource: &Resource) {
    if resource.depends_on.is_empty() {
        return;
    }
    put!(out, "Depends on:");
    for edge in &resource.depends_on {
        let flows: Vec<String> = edge
            .values
            .iter()
            .map(|flow| format!("{} from its {}{}", flow.dependent_field, flow.source_field, flowed(flow)))
            .collect();
        let separator = if flows.is_empty() { "" } else { ": " };
        let missing = match (edge.conflicted, &edge.id) {
            (true, _) => " (its name is held by another)",
            (false, None) => " (missing)",
            (false, Some(_)) => "",
        };
        put!(out, "  {}/{}{missing}{separator}{}", edge.kind, edge.name, flows.join(", "));
    }
}

/// What has flowed, which event gave it, and what is wrong with it now: ` = "123" (event 41)`.
fn flowed(flow: &FieldFlow) -> String {
    let value = if flow.flowed { format!(" = {}", short(&flow.value)) } else { String::new() };
    let event = flow.position.map(|position| format!("event {position}"));
    let mut said: Vec<String> = event.into_iter().chain(flow.reason.clone()).collect();
    if !flow.flowed && said.is_empty() {
        said.push("not yet".to_owned());
    }
    if said.is_empty() { value } else { format!("{value} ({})", said.join(", ")) }
}

/// A value as long as fits beside others.
fn short(value: &Value) -> String {
    const SHOWN: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn describe_children(out: &mut String, children: &Children) {
    let total = children.counts.total();
    if total == 0 {
        return;
    }
    let ready = children.counts.of("Ready");
    let bound = if children.complete { "" } else { "the first " };
    put!(out, "Children:     {ready} of {bound}{total} Ready");
    let rows = children
        .unready
        .iter()
        .map(|child| vec![format!("{}/{}", child.kind, child.name), child.phase.clone(), child.why.clone()]);
    if !children.unready.is_empty() {
        indent(out, &render(&["name", "phase", "why"], rows.collect()));
    }
    let more = (total - ready).saturating_sub(children.unready.len() as u64);
    if more > 0 {
        put!(out, "  and {more} more that are not Ready");
    }
}
