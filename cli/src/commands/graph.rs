//! `converge graph`: what depends on what, and which values flow, for eyes and for tools that draw.

mod dot;
mod mermaid;
#[cfg(test)]
mod tests;

use super::get::not_found;
use crate::client::model::{Graph, GraphAnswer, GraphEdge, GraphFlow, GraphNode, GraphUpstream};
use crate::client::{Client, operations};
use crate::exit::Outcome;
use crate::output::table::render;
use crate::{console, reference};
use clap::{Args, ValueEnum};
use converge_domain::ResourceRef;
use serde_json::json;
use std::collections::{HashMap, HashSet};

/// Longest value shown in a table, in characters.
const VALUE_SHOWN: usize = 40;

/// Shows dependencies, the values that flow over them, and which event gave each value.
#[derive(Debug, Args)]
pub struct GraphArgs {
    #[arg(value_name = "KIND/NAME", value_parser = reference::resource)]
    reference: ResourceRef,
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Output {
    #[default]
    Table,
    Dot,
    Mermaid,
    Json,
}

/// Runs it.
///
/// # Errors
/// When there is no such resource, and what the server says.
pub async fn run(args: GraphArgs, client: &Client) -> Outcome {
    let variables = json!({"kind": args.reference.kind, "name": args.reference.name});
    let answer: GraphAnswer = client.ask(operations::GRAPH, variables).await?;
    let graph = answer.graph.ok_or_else(|| not_found(&args.reference))?;
    if !graph.complete {
        let shown = graph.nodes.len();
        console::note(format_args!(
            "note: this is not all: the server shows {shown} resources; ask for one further down"
        ));
    }
    console::print(match args.output {
        Output::Table => table(&graph),
        Output::Dot => dot::draw(&graph),
        Output::Mermaid => mermaid::draw(&graph),
        Output::Json => serde_json::to_string_pretty(&graph).map_err(anyhow::Error::from)?,
    })?;
    Ok(())
}

/// What an edge leads to: a node of the graph, or a name that nobody bears.
fn upstream_key(to: &GraphUpstream) -> String {
    to.id.clone().unwrap_or_else(|| format!("{}/{}", to.kind, to.name))
}

/// Upstreams that are no nodes, each once.
fn missing(graph: &Graph) -> Vec<&GraphUpstream> {
    let mut seen: HashSet<String> = graph.nodes.iter().map(|node| node.id.clone()).collect();
    graph.edges.iter().map(|edge| &edge.to).filter(|to| seen.insert(upstream_key(to))).collect()
}

fn why_missing(to: &GraphUpstream) -> &'static str {
    match (to.conflicted, &to.id) {
        (true, _) => "held by another",
        (false, None) => "missing",
        (false, Some(_)) => "not shown",
    }
}

fn table(graph: &Graph) -> String {
    let names: HashMap<&str, &GraphNode> = graph.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut rows = Vec::new();
    for GraphEdge { from, to } in &graph.edges {
        let dependent = names
            .get(from.as_str())
            .map_or_else(String::new, |node| format!("{}/{} ({})", node.kind, node.name, node.phase));
        let state = match to.id.as_deref().and_then(|id| names.get(id)) {
            Some(node) => node.phase.clone(),
            None => why_missing(to).to_owned(),
        };
        let upstream = format!("{}/{} ({state})", to.kind, to.name);
        if to.values.is_empty() {
            rows.push(vec![dependent, upstream, String::new(), String::new(), String::new()]);
            continue;
        }
        for flow in &to.values {
            let (value, event) = shown(flow);
            let fields = format!("{} <- {}", field(&flow.dependent_field), field(&flow.source_field));
            rows.push(vec![dependent.clone(), upstream.clone(), fields, value, event]);
        }
    }
    if rows.is_empty() {
        return "nothing depends on anything".to_owned();
    }
    render(&["resource", "needs", "field", "value", "given by event"], rows)
}

/// A pointer on one line: keys may hold control characters. The empty pointer is the whole document.
fn field(pointer: &str) -> String {
    if pointer.is_empty() {
        return "(all)".to_owned();
    }
    let mut shown = String::with_capacity(pointer.len());
    for c in pointer.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn shown(flow: &GraphFlow) -> (String, String) {
    let value = if flow.flowed {
        let text = flow.value.to_string();
        match text.char_indices().nth(VALUE_SHOWN) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    } else {
        format!("waits: {}", flow.reason.as_deref().unwrap_or("its upstream is not Ready"))
    };
    (value, flow.position.map_or_else(String::new, |position| position.to_string()))
}

/// What flows over an edge, a line each.
fn label(to: &[GraphFlow]) -> Vec<String> {
    to.iter()
        .map(|flow| format!("{} → {}", field(&flow.source_field), field(&flow.dependent_field)))
        .collect()
}
