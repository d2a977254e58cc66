//! Mermaid.

use super::{label, missing, upstream_key, why_missing};
use crate::client::model::{Graph, GraphEdge};
use std::collections::HashMap;
use std::fmt::Write;

/// Nodes get short ids; everything else that names may hold is quoted.
pub fn draw(graph: &Graph) -> String {
    let mut out = String::from("flowchart LR\n");
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

/// A quoted string. What would end it, and what is read in any place, quoted or not (entities, tags, and the directives between
/// `%%{` and `}%%`), is written as an entity.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '#' | '<' | '>' | '`' | '|' | '&' | '\\' | '%' | '{' | '}' => {
                let _ = write!(quoted, "#{};", u32::from(c));
            }
            '\n' => quoted.push_str("<br/>"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
