//! What users declare: small trees of composites and leaves with edges and flows between siblings.

use super::provider::output;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Places for children under one composite. A place has a fixed kind and name, so two trees drawn one after the
/// other keep some children, change some, drop some and add some.
const PLACES: [(&str, &str); 6] =
    [("account", "a"), ("account", "b"), ("vpc", "c"), ("vpc", "d"), ("team", "e"), ("account", "f")];
pub const TEAM: usize = 4;

/// A composite's spec. Edges go from a later place to an earlier one; both ends must be there to count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    pub number: u32,
    pub label: u8,
    /// Number and label of the leaf at each place; at [`TEAM`], whether the nested composite is there.
    pub leaves: BTreeMap<usize, (u32, u8)>,
    pub team: Option<Box<Tree>>,
    /// From, to, and whether a value flows.
    pub edges: Vec<(usize, usize, bool)>,
    /// Two edges in a circle: the whole composition is refused.
    pub circle: bool,
}

/// A live resource as it must be in the end.
#[derive(Debug, PartialEq)]
pub struct Wanted {
    pub owner: Option<(String, String)>,
    pub spec: Value,
    /// Flowed values by field.
    pub flows: BTreeMap<String, Value>,
    pub label: String,
}

pub type World = BTreeMap<(String, String), Wanted>;

impl Tree {
    fn has(&self, place: usize) -> bool {
        if place == TEAM { self.team.is_some() } else { self.leaves.contains_key(&place) }
    }

    fn live_edges(&self) -> impl Iterator<Item = &(usize, usize, bool)> {
        self.edges.iter().filter(|(from, to, _)| self.has(*from) && self.has(*to))
    }

    /// The spec of the composite called `name`.
    pub fn spec(&self, name: &str) -> Value {
        let mut children = Vec::new();
        for (place, (kind, short)) in PLACES.iter().enumerate() {
            let child = format!("{name}-{short}");
            let (spec, label) = match (&self.team, self.leaves.get(&place)) {
                (Some(team), _) if place == TEAM => (team.spec(&child), team.label),
                (_, Some((number, label))) if place != TEAM => (json!({ "n": number }), *label),
                _ => continue,
            };
            children.push(json!({
                "kind": kind, "kind_version": 1, "name": child, "spec": spec, "labels": labels(label)
            }));
        }
        // Dependents first: the order of the output is not the order of writing.
        children.reverse();
        let edge = |from: usize, to: usize, flows: bool| {
            let end = |place: usize| json!({"kind": PLACES[place].0, "name": format!("{name}-{}", PLACES[place].1)});
            let values = flows
                .then(|| json!({"dependent_field": format!("/in-{}", PLACES[to].1), "source_field": "/id"}));
            json!({"from": end(from), "to": end(to), "values": values.into_iter().collect::<Vec<_>>()})
        };
        let mut edges: Vec<Value> =
            self.live_edges().map(|(from, to, flows)| edge(*from, *to, *flows)).collect();
        if self.circle
            && let Some((from, to, _)) = self.live_edges().next()
        {
            edges.push(edge(*to, *from, false));
        }
        json!({"n": self.number, "children": children, "edges": edges})
    }

    pub fn document(&self, name: &str) -> Value {
        json!({
            "type": "resource", "kind": "root", "kind_version": 1, "name": name,
            "spec": self.spec(name), "labels": labels(self.label)
        })
    }

    /// Every number raised and every circle broken: whatever failed gets a new generation.
    pub fn mended(&self) -> Self {
        let mut tree = self.clone();
        tree.number += 1000;
        tree.circle = false;
        for (number, _) in tree.leaves.values_mut() {
            *number += 1000;
        }
        tree.team = tree.team.map(|team| Box::new(team.mended()));
        tree
    }

    /// Everything that must be there when the root called `name` has converged.
    pub fn wanted(&self, kind: &str, name: &str, owner: Option<(String, String)>, world: &mut World) {
        let me = (kind.to_owned(), name.to_owned());
        for (place, (kind, short)) in PLACES.iter().enumerate() {
            let child = format!("{name}-{short}");
            match (&self.team, self.leaves.get(&place)) {
                (Some(team), _) if place == TEAM => team.wanted(kind, &child, Some(me.clone()), world),
                (_, Some((number, label))) if place != TEAM => {
                    let wanted = Wanted {
                        owner: Some(me.clone()),
                        spec: json!({ "n": number }),
                        flows: BTreeMap::new(),
                        label: label.to_string(),
                    };
                    world.insert(((*kind).to_owned(), child), wanted);
                }
                _ => {}
            }
        }
        for (from, to, flows) in self.live_edges() {
            let key = |place: usize| (PLACES[place].0.to_owned(), format!("{name}-{}", PLACES[place].1));
            let (upstream, dependent) = (key(*to), key(*from));
            let value = output(&upstream.0, &upstream.1, &world[&upstream].spec);
            if *flows && let Some(wanted) = world.get_mut(&dependent) {
                wanted.flows.insert(format!("/in-{}", PLACES[*to].1), json!(value));
            }
        }
        let wanted =
            Wanted { owner, spec: self.spec(name), flows: BTreeMap::new(), label: self.label.to_string() };
        world.insert(me, wanted);
    }
}

fn labels(label: u8) -> Value {
    json!({ "tier": label.to_string() })
}

/// Trees with at most one composite nested in another, `depth` deep.
pub fn tree(depth: u32) -> BoxedStrategy<Tree> {
    let leaf = prop::option::weighted(0.6, (0_u32..3, 0_u8..2));
    let leaves = prop::collection::vec(leaf, PLACES.len());
    let edges = prop::collection::btree_map((0..PLACES.len(), 0..PLACES.len()), any::<bool>(), 0..6);
    let team = if depth == 0 {
        Just(None).boxed()
    } else {
        prop::option::weighted(0.5, tree(depth - 1).prop_map(Box::new)).boxed()
    };
    (0_u32..3, 0_u8..2, leaves, team, edges, prop::bool::weighted(0.06))
        .prop_map(|(number, label, leaves, team, edges, circle)| Tree {
            number,
            label,
            leaves: leaves
                .into_iter()
                .enumerate()
                .filter_map(|(place, leaf)| Some((place, leaf?)))
                .filter(|(place, _)| *place != TEAM)
                .collect(),
            team,
            edges: edges
                .into_iter()
                .filter(|((from, to), _)| from > to)
                .map(|((from, to), flows)| (from, to, flows))
                .collect(),
            circle,
        })
        .boxed()
}
