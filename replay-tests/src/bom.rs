//! Bills of materials of any size, in the shape of the example's, and what must come of them.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// `domains` domains of `teams` teams; every domain has a gateway.
#[derive(Clone, Debug)]
pub struct Bom {
    pub name: String,
    pub domains: Vec<Vec<String>>,
}

impl Bom {
    pub fn new(name: &str, domains: usize, teams: usize) -> Self {
        let team = |team| format!("team-{team}");
        Self { name: name.to_owned(), domains: vec![(0..teams).map(team).collect(); domains] }
    }

    /// The document to apply.
    pub fn document(&self) -> Value {
        let domains: Vec<Value> =
            self.domains.iter().enumerate().map(|(at, teams)| domain(at, teams)).collect();
        json!({
            "type": "resource", "kind": "classicbom", "kind_version": 1, "name": self.name,
            "spec": { "deployment_instance": { "name": self.name, "functional_domains": domains } }
        })
    }

    /// `(kind, name)` of every child: an account, a vpc and a route for each team, and an account and a gateway for each
    /// domain.
    pub fn children(&self) -> BTreeSet<(String, String)> {
        let mut children = BTreeSet::new();
        for (at, teams) in self.domains.iter().enumerate() {
            let domain = format!("{}/fd-{at:02}", self.name);
            children.insert(("tgw".to_owned(), domain.clone()));
            children.insert(("account".to_owned(), format!("{domain}-tgw")));
            for team in teams {
                for kind in ["account", "vpc", "route"] {
                    children.insert((kind.to_owned(), format!("{domain}/{team}")));
                }
            }
        }
        children
    }
}

fn domain(at: usize, teams: &[String]) -> Value {
    let teams: Vec<Value> = teams.iter().map(|team| json!({ "name": team })).collect();
    json!({
        "name": format!("fd-{at:02}"), "accounts_only": false,
        "aws_transit_gateway": { "enabled": true }, "service_teams": teams
    })
}
