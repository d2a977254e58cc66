//! From the settled subtree to one row per team. Fed node by node, so a large subtree needs memory for its teams only.

use super::{DOMAIN_LABEL, TEAM_LABEL};
use converge_sdk::Node;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The rows so far. Sorted by (domain, team), so the order in which nodes come does not show.
#[derive(Default)]
pub(super) struct Rollup {
    teams: BTreeMap<(String, String), Row>,
    /// The gateway's id by domain.
    gateways: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Row {
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vpc_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tgw_id: Option<String>,
}

impl Default for Row {
    fn default() -> Self {
        Self { ready: true, account_id: None, vpc_id: None, route_id: None, tgw_id: None }
    }
}

impl Rollup {
    /// Takes one descendant into account.
    pub(super) fn add(&mut self, node: Node) {
        let Some(domain) = node.labels.get(DOMAIN_LABEL).cloned() else { return };
        let id = |field: &str| node.status.as_ref()?.get(field)?.as_str().map(str::to_owned);
        let Some(team) = node.labels.get(TEAM_LABEL).cloned() else {
            self.gateways.extend(id("tgw_id").map(|id| (domain, id)));
            return;
        };
        let row = self.teams.entry((domain, team)).or_default();
        row.ready &= node.phase == "Ready";
        match node.kind.as_str() {
            "account" => row.account_id = id("account_id"),
            "vpc" => row.vpc_id = id("vpc_id"),
            "route" => row.route_id = id("route_id"),
            _ => {}
        }
    }

    /// The composite's status.
    pub(super) fn status(mut self) -> Value {
        let teams: Vec<Value> = self
            .teams
            .iter_mut()
            .map(|((domain, team), row)| {
                row.tgw_id = self.gateways.get(domain).cloned();
                let mut value = json!(row);
                value["fd"] = json!(domain);
                value["team"] = json!(team);
                value
            })
            .collect();
        json!({ "teams": teams })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, labels: &[(&str, &str)], phase: &str, status: Value) -> Node {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        let node = json!({ "kind": kind, "name": "n", "labels": labels, "phase": phase, "status": status });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_team_is_ready_when_all_of_its_resources_are_and_shows_the_ids_it_has() {
        let (a, b, gateway) = ([("fd", "D"), ("team", "A")], [("fd", "D"), ("team", "B")], [("fd", "D")]);
        let mut nodes = [
            node("account", &b, "Ready", json!({ "account_id": "000000000002" })),
            node("vpc", &b, "Failed", Value::Null),
            node("account", &a, "Ready", json!({ "account_id": "000000000001" })),
            node("vpc", &a, "Ready", json!({ "vpc_id": "vpc-1" })),
            node("route", &a, "Ready", json!({ "route_id": "rt-1" })),
            node("account", &gateway, "Ready", json!({ "account_id": "000000000003" })),
            node("tgw", &gateway, "Degraded", json!({ "tgw_id": "tgw-1" })),
            node("account", &[("fd", "C"), ("team", "Z")], "Ready", json!({ "account_id": "000000000004" })),
        ];
        let expected = json!({ "teams": [
            { "fd": "C", "team": "Z", "ready": true, "account_id": "000000000004" },
            { "fd": "D", "team": "A", "ready": true, "account_id": "000000000001", "vpc_id": "vpc-1",
              "route_id": "rt-1", "tgw_id": "tgw-1" },
            { "fd": "D", "team": "B", "ready": false, "account_id": "000000000002", "tgw_id": "tgw-1" },
        ]});
        for _ in 0..nodes.len() {
            nodes.rotate_left(1);
            let mut rollup = Rollup::default();
            nodes.iter().cloned().for_each(|node| rollup.add(node));
            assert_eq!(rollup.status(), expected);
        }
    }

    #[test]
    fn no_descendants_means_no_teams() {
        assert_eq!(Rollup::default().status(), json!({ "teams": [] }));
    }
}
