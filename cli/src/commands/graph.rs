//! `converge graph`: what depends on what, and which values flow, for eyes and for tools that draw.

use super::get::not_found;
use crate::client::model::{Graph, GraphAnswer, GraphEdge, GraphFlow, GraphNode, GraphUpstream};
use crate::client::{Client, operations};
use crate::exit::Outcome;
use crate::output::table::render;
use crate::{console, reference};
use clap::{Args, ValueEnum};
use converge_domain::ResourceRef;
use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write;

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
        console::note("note: there is more than is shown");
    }
    console::print(match args.output {
        Output::Table => table(&graph),
        Output::Dot => dot(&graph),
        Output::Mermaid => mermaid(&graph),
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
    let mut seen: Vec<String> = graph.nodes.iter().map(|node| node.id.clone()).collect();
    let mut missing = Vec::new();
    for GraphEdge { to, .. } in &graph.edges {
        let key = upstream_key(to);
        if !seen.contains(&key) {
            seen.push(key);
            missing.push(to);
        }
    }
    missing
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

/// The whole document is the empty pointer.
fn field(pointer: &str) -> &str {
    if pointer.is_empty() { "(all)" } else { pointer }
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

fn label(to: &[GraphFlow]) -> Vec<String> {
    to.iter()
        .map(|flow| format!("{} → {}", field(&flow.source_field), field(&flow.dependent_field)))
        .collect()
}

/// Graphviz. An arrow leads from what is needed to what needs it: the way values flow.
fn dot(graph: &Graph) -> String {
    let mut out = String::from("digraph converge {\n  rankdir=LR;\n  node [shape=box, style=filled];\n");
    let quoted = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{escaped}\"")
    };
    for node in &graph.nodes {
        let name = quoted(&format!("{}/{}\n{}", node.kind, node.name, node.phase));
        let _ = writeln!(out, "  {} [label={name}, fillcolor={}];", quoted(&node.id), colour(&node.phase));
    }
    for to in missing(graph) {
        let name = quoted(&format!("{}/{}\n{}", to.kind, to.name, why_missing(to)));
        let _ = writeln!(out, "  {} [label={name}, style=dashed];", quoted(&upstream_key(to)));
    }
    for GraphEdge { from, to } in &graph.edges {
        let label = quoted(&label(&to.values).join("\n"));
        let _ = writeln!(out, "  {} -> {} [label={label}];", quoted(&upstream_key(to)), quoted(from));
    }
    out.push('}');
    out
}

fn colour(phase: &str) -> &'static str {
    match phase {
        "Ready" => "palegreen",
        "Failed" => "salmon",
        "Degraded" | "Quarantined" => "orange",
        "Deleting" | "Orphaned" => "lightgrey",
        _ => "khaki",
    }
}

/// Mermaid. Nodes get short ids; everything else that names may hold is quoted, and what would end a quote is written as an
/// entity.
fn mermaid(graph: &Graph) -> String {
    let mut out = String::from("flowchart LR\n");
    let quoted = |text: &str| {
        let mut escaped = String::new();
        for c in text.chars() {
            match c {
                '"' | '#' | '<' | '>' | '`' | '|' | '&' | '\\' => {
                    let _ = write!(escaped, "#{};", c as u32);
                }
                '\n' => escaped.push_str("<br/>"),
                c => escaped.push(c),
            }
        }
        format!("\"{escaped}\"")
    };
    let mut ids: HashMap<String, String> = HashMap::new();
    for node in &graph.nodes {
        let id = format!("n{}", ids.len());
        let name = quoted(&format!("{}/{}\n{}", node.kind, node.name, node.phase));
        let _ = writeln!(out, "  {id}[{name}]:::{}", node.phase);
        ids.insert(node.id.clone(), id);
    }
    for to in missing(graph) {
        let id = format!("n{}", ids.len());
        let name = quoted(&format!("{}/{}\n{}", to.kind, to.name, why_missing(to)));
        let _ = writeln!(out, "  {id}[{name}]:::missing");
        ids.insert(upstream_key(to), id);
    }
    for GraphEdge { from, to } in &graph.edges {
        let (Some(upstream), Some(dependent)) = (ids.get(&upstream_key(to)), ids.get(from)) else { continue };
        let labels = label(&to.values);
        if labels.is_empty() {
            let _ = writeln!(out, "  {upstream} --> {dependent}");
        } else {
            let _ = writeln!(out, "  {upstream} -->|{}| {dependent}", quoted(&labels.join("\n")));
        }
    }
    for (phase, fill) in [
        ("Ready", "#98fb98"),
        ("Failed", "#fa8072"),
        ("Degraded", "#ffa500"),
        ("Quarantined", "#ffa500"),
        ("Deleting", "#d3d3d3"),
        ("Orphaned", "#d3d3d3"),
        ("Reconciling", "#f0e68c"),
    ] {
        if graph.nodes.iter().any(|node| node.phase == phase) {
            let _ = writeln!(out, "  classDef {phase} fill:{fill}");
        }
    }
    let _ = write!(out, "  classDef missing stroke-dasharray: 5 5");
    out
}

#[cfg(test)]
mod tests;
