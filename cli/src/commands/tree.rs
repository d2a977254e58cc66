//! `converge tree`: a composition with its phases, and what it adds up to.

use crate::client::model::{TreeAnswer, TreeNode};
use crate::client::{Client, ClientError, operations};
use crate::console::{self, paint_phase};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::table::render;
use crate::progress::PhaseCounts;
use crate::reference;
use clap::Args;
use converge_domain::ResourceRef;
use converge_domain::resource::Phase;
use serde_json::json;
use std::collections::BTreeMap;

const PAGE: usize = 1_000;

/// Shows a composition with its phases.
#[derive(Debug, Args)]
pub struct TreeArgs {
    #[arg(value_name = "KIND/NAME", value_parser = reference::resource)]
    reference: ResourceRef,
    /// How many levels below the root to show; deeper ones are counted
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
}

/// Runs it.
///
/// # Errors
/// When there is no such resource, and what the server says.
pub async fn run(args: TreeArgs, client: &Client) -> Outcome {
    let nodes = fetch(client, &args.reference, None).await?;
    if nodes.is_empty() {
        return Err(Failure::new(Exit::NotFound, format_args!("{} does not exist", args.reference)));
    }
    for line in lines(&nodes, args.depth.unwrap_or(usize::MAX)) {
        console::print(line)?;
    }
    console::print(format_args!("\n{}", summary(&nodes)))?;
    Ok(())
}

/// The whole composition, root first, depth-first, as of `min_position` or later.
///
/// # Errors
/// What the server says.
pub async fn fetch(
    client: &Client,
    reference: &ResourceRef,
    min_position: Option<u64>,
) -> Result<Vec<TreeNode>, ClientError> {
    let min_position = min_position.map(|position| position.to_string());
    let mut nodes = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let variables = json!({"kind": reference.kind, "name": reference.name, "first": PAGE, "after": after,
            "minPosition": min_position});
        let page = client.ask::<TreeAnswer>(operations::TREE, variables).await?.tree;
        nodes.extend(page.nodes);
        match page.page_info.end_cursor {
            Some(cursor) if page.page_info.has_next_page => after = Some(cursor),
            _ => return Ok(nodes),
        }
    }
}

/// One line per shown node. Whether a node is its parent's last child shows only further down, so it is found
/// by one walk from the end.
fn lines(nodes: &[TreeNode], depth_max: usize) -> Vec<String> {
    let mut last = vec![true; nodes.len()];
    let mut open: Vec<bool> = Vec::new();
    for (index, node) in nodes.iter().enumerate().rev() {
        open.resize(node.depth + 1, false);
        last[index] = !open[node.depth];
        open[node.depth] = true;
    }
    let mut lines = Vec::new();
    // For each depth above the current node: whether the line of that ancestor goes on below.
    let mut continues: Vec<bool> = Vec::new();
    let mut index = 0;
    while index < nodes.len() {
        let node = &nodes[index];
        continues.truncate(node.depth);
        let mut line = guide(&continues);
        if node.depth > 0 {
            line.push_str(if last[index] { "└─ " } else { "├─ " });
        }
        let resource = &node.resource;
        line.push_str(&format!("{}/{}  {}", resource.kind, resource.name, paint_phase(&resource.phase)));
        continues.push(node.depth > 0 && !last[index]);
        index += 1;
        if node.depth >= depth_max {
            let hidden = nodes[index..].iter().take_while(|below| below.depth > node.depth).count();
            if hidden > 0 {
                line.push_str(&format!("  (+{hidden}: {})", phases(&nodes[index..index + hidden])));
                index += hidden;
            }
        }
        lines.push(line);
    }
    lines
}

/// The vertical lines left of a node. The root has none of its own.
fn guide(continues: &[bool]) -> String {
    continues.iter().skip(1).map(|goes_on| if *goes_on { "│  " } else { "   " }).collect()
}

fn phases(nodes: &[TreeNode]) -> String {
    let mut counts = PhaseCounts::default();
    nodes.iter().for_each(|node| counts.add(&node.resource.phase, 1));
    let shown: Vec<String> = Phase::ALL
        .iter()
        .map(|phase| (phase.as_str(), counts.of(phase.as_str())))
        .filter(|(_, count)| *count > 0)
        .map(|(phase, count)| format!("{count} {phase}"))
        .collect();
    shown.join(", ")
}

/// Counts per kind and phase, in the phases that occur.
pub fn summary(nodes: &[TreeNode]) -> String {
    let mut kinds: BTreeMap<&str, PhaseCounts> = BTreeMap::new();
    for node in nodes {
        kinds.entry(&node.resource.kind).or_default().add(&node.resource.phase, 1);
    }
    let phases: Vec<&str> = Phase::ALL
        .iter()
        .map(|phase| phase.as_str())
        .filter(|phase| *phase == "Ready" || kinds.values().any(|counts| counts.of(phase) > 0))
        .collect();
    let mut header = vec!["kind", "total"];
    header.extend(&phases);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (kind, counts) in &kinds {
        let mut row = vec![(*kind).to_owned(), counts.total().to_string()];
        row.extend(phases.iter().map(|phase| counts.of(phase).to_string()));
        rows.push(row);
    }
    if kinds.len() > 1 {
        let mut row = vec!["(all)".to_owned(), nodes.len().to_string()];
        row.extend(
            phases.iter().map(|phase| kinds.values().map(|counts| counts.of(phase)).sum::<u64>().to_string()),
        );
        rows.push(row);
    }
    render(&header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn nodes(shape: &[(usize, &str, &str, &str)]) -> Vec<TreeNode> {
        shape
            .iter()
            .map(|(depth, kind, name, phase)| {
                let resource = json!({"id": name, "kind": kind, "name": name, "phase": phase});
                TreeNode { depth: *depth, resource: serde_json::from_value(resource).unwrap() }
            })
            .collect()
    }

    fn zone() -> Vec<TreeNode> {
        nodes(&[
            (0, "zone", "z", "Reconciling"),
            (1, "domain", "a", "Reconciling"),
            (2, "account", "a-1", "Ready"),
            (3, "key", "k", "Failed"),
            (2, "vpc", "a-1", "Reconciling"),
            (1, "domain", "b", "Ready"),
            (2, "account", "b-1", "Ready"),
        ])
    }

    #[test]
    fn every_node_hangs_below_its_owner() {
        expect![[r"
            zone/z  Reconciling
            ├─ domain/a  Reconciling
            │  ├─ account/a-1  Ready
            │  │  └─ key/k  Failed
            │  └─ vpc/a-1  Reconciling
            └─ domain/b  Ready
               └─ account/b-1  Ready"]]
        .assert_eq(&lines(&zone(), usize::MAX).join("\n"));
    }

    #[test]
    fn what_is_deeper_than_asked_is_counted() {
        expect![[r"
            zone/z  Reconciling
            ├─ domain/a  Reconciling  (+3: 1 Failed, 1 Ready, 1 Reconciling)
            └─ domain/b  Ready  (+1: 1 Ready)"]]
        .assert_eq(&lines(&zone(), 1).join("\n"));
    }

    #[test]
    fn the_summary_counts_kinds_and_phases() {
        expect![[r"
            KIND      TOTAL   FAILED   READY   RECONCILING
            account   2       0        2       0
            domain    2       0        1       1
            key       1       1        0       0
            vpc       1       0        0       1
            zone      1       0        0       1
            (all)     7       1        3       3"]]
        .assert_eq(&summary(&zone()));
    }
}
