//! The composer: a small landing zone of as many children as the spec says.
//!
//! Children come in domains of 100: a transit gateway, then teams of an account, a VPC that needs the account's id, and
//! a route that needs the VPC's id and the gateway's. Cut off anywhere, what is left is a graph.

use std::sync::Arc;

use converge_sdk::{
    Child, Composition, Edge, FieldFlow, Outcome, Provider, Reaction, Reference, Request, TaskError,
    async_trait, terminal,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::kinds::{ACCOUNT, GATEWAY, ROOT, ROUTE, VPC};
use super::ledger::Ledger;
use crate::bench::random::hash;

const DOMAIN: u32 = 100;
/// One child in so many is changed by an edit.
const EDITED: u64 = 100;

/// The provider of the root.
pub struct Composer {
    ledger: Arc<Ledger>,
}

/// A root's spec.
#[derive(Debug, Deserialize)]
struct Spec {
    children: u32,
    /// From 1. Each edition after the first changes other children, 1 % of them.
    #[serde(default)]
    edition: u64,
    /// How long a changed child's work takes at least, so that a worker can be killed in it.
    #[serde(default)]
    pause_ms: u64,
    #[serde(default)]
    seed: u64,
}

/// What a child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Gateway,
    Account,
    Vpc,
    Route,
}

/// Where a child stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    domain: u32,
    team: u32,
    part: Part,
}

impl Place {
    const fn of(child: u32) -> Self {
        let (domain, place) = (child / DOMAIN, child % DOMAIN);
        let (team, part) = match place.checked_sub(1) {
            None => (0, Part::Gateway),
            Some(member) => (
                member / 3,
                match member % 3 {
                    0 => Part::Account,
                    1 => Part::Vpc,
                    _ => Part::Route,
                },
            ),
        };
        Self { domain, team, part }
    }

    /// Kind and name below a root.
    fn reference(self, root: &str) -> Reference {
        let (kind, Self { domain, team, .. }) = (self.part.kind(), self);
        match self.part {
            Part::Gateway => Reference::new(kind, format!("{root}-d{domain:05}-gateway")),
            _ => Reference::new(kind, format!("{root}-d{domain:05}-t{team:02}")),
        }
    }

    const fn sibling(self, part: Part) -> Self {
        Self { part, ..self }
    }
}

impl Part {
    const fn kind(self) -> &'static str {
        match self {
            Self::Gateway => GATEWAY,
            Self::Account => ACCOUNT,
            Self::Vpc => VPC,
            Self::Route => ROUTE,
        }
    }

    /// What it needs first, and which field takes that one's id.
    const fn needs(self) -> &'static [(Self, &'static str)] {
        match self {
            Self::Gateway | Self::Account => &[],
            Self::Vpc => &[(Self::Account, "/account_id")],
            Self::Route => &[(Self::Vpc, "/vpc_id"), (Self::Gateway, "/tgw_id")],
        }
    }
}

/// Kind, name, and a name's beginning that it shares with its domain: of child number `child` of a root.
pub fn shape_of(root: &str, child: u32) -> (String, String, String) {
    let place = Place::of(child);
    let Reference { kind, name } = place.reference(root);
    (kind, name, format!("{root}-d{:05}-", place.domain))
}

/// How many of a root's children change when it goes from the edition before to this one. A child takes the latest edition
/// that was meant for it, so no other changes.
pub fn edits_of(root: &str, children: u32, edition: u64, seed: u64) -> u32 {
    let edited = (0..children).filter(|child| is_edited(root, *child, edition, seed)).count();
    u32::try_from(edited).unwrap_or(u32::MAX)
}

fn is_edited(root: &str, child: u32, edition: u64, seed: u64) -> bool {
    let root = root.bytes().fold(seed, |seed, byte| hash(seed, u64::from(byte)));
    hash(root ^ edition.rotate_left(32), u64::from(child)).is_multiple_of(EDITED)
}

fn compose(root: &str, spec: &Spec) -> Composition {
    let mut composition = Composition::new();
    for child in 0..spec.children {
        let place = Place::of(child);
        let reference = place.reference(root);
        for (part, field) in place.part.needs() {
            let values =
                vec![FieldFlow { dependent_field: (*field).to_owned(), source_field: "/id".to_owned() }];
            let to = place.sibling(*part).reference(root);
            composition.edge(&Edge { from: reference.clone(), to, values });
        }
        let mut declared = declared(place, &reference.name);
        let edition = (2..=spec.edition).rev().find(|edition| is_edited(root, child, *edition, spec.seed));
        if let Some(edition) = edition {
            declared["edition"] = json!(edition);
            if spec.pause_ms > 0 && edition == spec.edition {
                // Spread out, so that at any moment some are done and others under way.
                declared["pause_ms"] = json!(spec.pause_ms * (1 + u64::from(child) % 8));
            }
        }
        composition.child(&Child {
            kind: reference.kind,
            kind_version: 1,
            name: reference.name,
            spec: declared,
            labels: [("domain".to_owned(), format!("d{:05}", place.domain))].into(),
            provider_config_ref: None,
            deletion_protection: None,
        });
    }
    composition
}

/// The fields that no upstream fills.
fn declared(place: Place, name: &str) -> Value {
    match place.part {
        Part::Gateway => json!({ "name": name }),
        Part::Account => json!({ "team_name": name, "email": format!("{name}@example.com") }),
        Part::Vpc => json!({ "cidr": format!("10.{}.{}.0/24", place.domain % 256, place.team) }),
        Part::Route => json!({}),
    }
}

impl Composer {
    pub fn new(ledger: &Arc<Ledger>) -> Self {
        Self { ledger: Arc::clone(ledger) }
    }
}

#[async_trait]
impl Provider for Composer {
    fn kind(&self) -> &str {
        ROOT
    }

    async fn work(&self, mut request: Request) -> Result<Outcome, TaskError> {
        match request.reaction {
            Reaction::Compose => {
                let spec: Spec = request.spec.parse()?;
                let status = json!({ "composed": spec.children });
                Ok(Outcome::new().composition(compose(&request.name, &spec)).status(status))
            }
            Reaction::Rollup => {
                let mut nodes = 0;
                while let Some((_, page)) = request.input.next_page().await? {
                    nodes += page.len();
                }
                Ok(Outcome::new().status(json!({ "nodes": nodes })))
            }
            Reaction::Teardown => {
                self.ledger.perform(&request)?;
                Ok(Outcome::new())
            }
            other => Err(terminal(format!("{ROOT} has no reaction `{}`", other.as_str()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn composed(spec: Value) -> (Vec<Child>, Vec<Edge>) {
        let composition = compose("r", &serde_json::from_value(spec).unwrap());
        (
            composition.children().iter().map(|item| serde_json::from_slice(&item).unwrap()).collect(),
            composition.edges().iter().map(|item| serde_json::from_slice(&item).unwrap()).collect(),
        )
    }

    #[test]
    fn any_number_of_children_is_a_graph_whose_edges_end_in_it() {
        for n in [1, 2, 3, 4, 100, 101, 250] {
            let (children, edges) = composed(json!({ "children": n }));
            let known: HashSet<_> = children.iter().map(|c| (c.kind.clone(), c.name.clone())).collect();
            assert_eq!(known.len(), n);
            for edge in edges {
                assert!(known.contains(&(edge.from.kind, edge.from.name)));
                assert!(known.contains(&(edge.to.kind, edge.to.name)));
            }
        }
    }

    #[test]
    fn a_domain_has_a_gateway_and_thirty_three_teams() {
        let (children, edges) = composed(json!({ "children": 100 }));
        let of = |kind: &str| children.iter().filter(|child| child.kind == kind).count();
        assert_eq!([of(GATEWAY), of(ACCOUNT), of(VPC), of(ROUTE)], [1, 33, 33, 33]);
        assert_eq!(edges.len(), 99);
    }

    #[test]
    fn an_edition_changes_the_children_that_it_counts_and_no_other() {
        let spec = |edition: u64| json!({ "children": 5000, "edition": edition, "seed": 3 });
        for edition in 2..5 {
            let (before, after) = (composed(spec(edition - 1)).0, composed(spec(edition)).0);
            let changed = before.iter().zip(&after).filter(|(before, after)| before != after).count();
            assert_eq!(changed, usize::try_from(edits_of("r", 5000, edition, 3)).unwrap());
            assert!((20..90).contains(&changed), "{changed}");
        }
    }

    #[test]
    fn a_child_is_named_as_it_is_composed() {
        let (children, _) = composed(json!({ "children": 250 }));
        for (number, child) in children.iter().enumerate() {
            let (kind, name, domain) = shape_of("r", u32::try_from(number).unwrap());
            assert_eq!((&kind, &name), (&child.kind, &child.name));
            assert!(name.starts_with(&domain));
        }
    }
}
