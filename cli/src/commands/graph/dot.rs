//! Graphviz.

use super::{label, missing, upstream_key, why_missing};
use crate::client::model::{Graph, GraphEdge};
use std::fmt::Write;

/// An arrow leads from what is needed to what needs it: the way values flow.
pub fn draw(graph: &Graph) -> String {
    let mut out = String::from("digraph converge {\n  rankdir=LR;\n  node [shape=box, style=filled];\n");
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

/// A quoted string. A backslash begins an escape there, and an ampersand an entity, as in HTML.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            '&' => quoted.push_str("&amp;"),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
