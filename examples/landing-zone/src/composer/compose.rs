//! From a bill of materials to the whole desired graph. The same bill gives the same graph, item by item.

use super::{DOMAIN_LABEL, TEAM_LABEL};
use crate::bom::{Bom, Domain, Team};
use converge_sdk::{Child, Composition, Edge, FieldFlow, Reference};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const VPC_CIDR: &str = "10.0.0.0/16";

/// The graph.
pub(super) fn compose(bom: &Bom) -> Composition {
    let mut graph = Graph { instance: &bom.deployment_instance.name, composition: Composition::new() };
    for domain in &bom.deployment_instance.functional_domains {
        if domain.has_gateway() {
            graph.gateway(domain);
        }
        for team in &domain.service_teams {
            graph.team(domain, team);
        }
    }
    graph.composition
}

struct Graph<'a> {
    instance: &'a str,
    composition: Composition,
}

impl Graph<'_> {
    /// The domain's gateway, in an account of its own.
    fn gateway(&mut self, domain: &Domain) {
        let labels = labels(domain, None);
        let account = format!("{}/{}-tgw", self.instance, domain.name);
        let spec = json!({ "team_name": "tgw", "email": "" });
        self.child("account", &account, spec, labels.clone());
        self.child("tgw", &self.domain(domain), json!({ "name": domain.name }), labels);
        self.edge(("tgw", self.domain(domain)), ("account", account), None);
    }

    /// The team's account, and, as far as the domain goes, its network and its route.
    fn team(&mut self, domain: &Domain, team: &Team) {
        let name = format!("{}/{}", self.domain(domain), team.name);
        let labels = labels(domain, Some(team));
        let spec = json!({ "team_name": team.name, "email": "" });
        self.child("account", &name, spec, labels.clone());
        if domain.accounts_only {
            return;
        }
        self.child("vpc", &name, json!({ "cidr": VPC_CIDR }), labels.clone());
        self.edge(("vpc", name.clone()), ("account", name.clone()), Some("/account_id"));
        if domain.has_gateway() {
            // Both of its fields flow in.
            self.child("route", &name, json!({}), labels);
            self.edge(("route", name.clone()), ("vpc", name.clone()), Some("/vpc_id"));
            self.edge(("route", name), ("tgw", self.domain(domain)), Some("/tgw_id"));
        }
    }

    fn domain(&self, domain: &Domain) -> String {
        format!("{}/{}", self.instance, domain.name)
    }

    fn child(&mut self, kind: &str, name: &str, spec: Value, labels: BTreeMap<String, String>) {
        self.composition.child(&Child {
            kind: kind.to_owned(),
            kind_version: 1,
            name: name.to_owned(),
            spec,
            labels,
            provider_config_ref: None,
            deletion_protection: None,
        });
    }

    /// `from` needs `to`; a field flows under the same name on both sides.
    fn edge(&mut self, from: (&str, String), to: (&str, String), field: Option<&str>) {
        let flow =
            |field: &str| FieldFlow { dependent_field: field.to_owned(), source_field: field.to_owned() };
        self.composition.edge(&Edge {
            from: Reference::new(from.0, from.1),
            to: Reference::new(to.0, to.1),
            values: field.map(flow).into_iter().collect(),
        });
    }
}

fn labels(domain: &Domain, team: Option<&Team>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([(DOMAIN_LABEL.to_owned(), domain.name.clone())]);
    labels.extend(team.map(|team| (TEAM_LABEL.to_owned(), team.name.clone())));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn composed(spec: &Value) -> (Vec<Child>, Vec<Edge>) {
        let composition = compose(&serde_json::from_value(spec.clone()).unwrap());
        let children = composition.children().iter().map(|c| serde_json::from_slice(&c).unwrap()).collect();
        (children, composition.edges().iter().map(|e| serde_json::from_slice(&e).unwrap()).collect())
    }

    fn names(children: &[Child]) -> Vec<String> {
        children.iter().map(|child| format!("{}:{}", child.kind, child.name)).collect()
    }

    fn one_domain(domain: Value) -> Value {
        json!({ "deployment_instance": { "name": "I", "functional_domains": [domain] } })
    }

    #[test]
    fn a_domain_with_a_gateway_routes_every_team_through_it() {
        let (children, edges) = composed(&one_domain(json!({
            "name": "D", "aws_transit_gateway": { "enabled": true }, "service_teams": [{ "name": "T" }]
        })));
        assert_eq!(
            names(&children),
            ["account:I/D-tgw", "tgw:I/D", "account:I/D/T", "vpc:I/D/T", "route:I/D/T"]
        );
        assert_eq!(children[0].spec, json!({ "team_name": "tgw", "email": "" }));
        assert_eq!(children[1].spec, json!({ "name": "D" }));
        assert_eq!(children[2].spec, json!({ "team_name": "T", "email": "" }));
        assert_eq!(children[3].spec, json!({ "cidr": "10.0.0.0/16" }));
        let told: Vec<String> = edges
            .iter()
            .map(|edge| {
                let flows: Vec<_> = edge.values.iter().map(|flow| flow.dependent_field.as_str()).collect();
                format!(
                    "{}:{} <- {}:{} {flows:?}",
                    edge.from.kind, edge.from.name, edge.to.kind, edge.to.name
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "tgw:I/D <- account:I/D-tgw []",
                "vpc:I/D/T <- account:I/D/T [\"/account_id\"]",
                "route:I/D/T <- vpc:I/D/T [\"/vpc_id\"]",
                "route:I/D/T <- tgw:I/D [\"/tgw_id\"]",
            ]
        );
    }

    #[test]
    fn without_a_gateway_there_is_no_route_and_accounts_only_means_it() {
        let (plain, _) = composed(&one_domain(json!({ "name": "D", "service_teams": [{ "name": "T" }] })));
        assert_eq!(names(&plain), ["account:I/D/T", "vpc:I/D/T"]);
        let (bare, edges) = composed(&one_domain(json!({
            "name": "D", "accounts_only": true, "aws_transit_gateway": { "enabled": true },
            "service_teams": [{ "name": "T" }]
        })));
        assert_eq!(names(&bare), ["account:I/D/T"]);
        assert!(edges.is_empty());
    }

    #[test]
    fn the_bill_of_58_domains_yields_3940_children_each_named_once_and_every_edge_has_both_ends() {
        let document: Value = serde_json::from_str(include_str!("../../bom.json")).unwrap();
        let (children, edges) = composed(&document["spec"]);
        assert_eq!(children.len(), 3940);
        let known: HashSet<_> = children.iter().map(|c| (c.kind.clone(), c.name.clone())).collect();
        assert_eq!(known.len(), children.len());
        for edge in &edges {
            for end in [&edge.from, &edge.to] {
                assert!(known.contains(&(end.kind.clone(), end.name.clone())), "{end:?}");
            }
        }
    }

    #[test]
    fn composing_twice_gives_the_same_bytes() {
        let document: Value = serde_json::from_str(include_str!("../../bom.json")).unwrap();
        let bom: Bom = serde_json::from_value(document["spec"].clone()).unwrap();
        let (one, two) = (compose(&bom), compose(&bom));
        assert_eq!((one.children(), one.edges()), (two.children(), two.edges()));
    }
}
