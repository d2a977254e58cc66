//! The dependency graph of one composition.
//!
//! A composer may return a million children, so the graph holds integers: a child is its place in the output, all
//! names live in one string, and adjacency is two flat arrays each way. Every walk is a loop over data, since a
//! dependency chain may be as long as the composition.

use super::EdgeItem;
use super::cycle::shortest_cycle;
use crate::ids::ResourceRef;
use crate::json::Pointer;
use crate::resource::FieldFlow;
use crate::value_flow::{overlap_message, overlapping_targets};
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Most errors reported for one graph.
pub const ERRORS_MAX: usize = 100;

/// A directed acyclic graph of children; ids are places in the output, from 0.
#[derive(Debug)]
pub struct Graph {
    names: Names,
    upstreams: Adjacency,
    dependents: Adjacency,
    /// Which of `lists` each upstream edge carries, in the order of `upstreams`.
    list_of: Vec<u32>,
    lists: Vec<Vec<FieldFlow>>,
    order: Vec<u32>,
}

/// Why an output is no graph. Any one of them rejects the whole output.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GraphError {
    #[error("{0} appears twice among the children")]
    DuplicateChild(ResourceRef),
    #[error("the edge {from} -> {to} names {missing}, which is not among the children")]
    UnknownEnd { from: ResourceRef, to: ResourceRef, missing: ResourceRef },
    #[error("{0} depends on itself")]
    SelfEdge(ResourceRef),
    #[error("the edge {from} -> {to} appears twice")]
    DuplicateEdge { from: ResourceRef, to: ResourceRef },
    #[error("{child}: {message}")]
    OverlappingFlows { child: ResourceRef, message: String },
    #[error("the edge {from} -> {to} carries `{field}`: {message}")]
    BadPointer { from: ResourceRef, to: ResourceRef, field: String, message: String },
    /// The shortest one; each needs the next, the last the first.
    #[error("the children depend on each other in a cycle: {}", cycle_text(.0))]
    Cycle(Vec<ResourceRef>),
    /// Ids and offsets are 32 bits wide.
    #[error("the composition is too large: at most 4294967295 children, edges, and bytes of names")]
    TooLarge,
}

/// The children of an output whose edges are not known yet.
#[derive(Debug, Default)]
pub struct Children {
    names: Names,
    kind_ids: HashMap<String, u32>,
    too_large: bool,
}

impl Children {
    /// The next child; its id is its place.
    pub fn push(&mut self, kind: &str, name: &str) {
        self.too_large |= self.names.push(kind, name, &mut self.kind_ids).is_none();
    }

    /// Number of children.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// No child comes any more; edges may.
    pub fn seal(mut self) -> GraphBuilder {
        let mut errors = Errors::default();
        if self.too_large {
            errors.push(GraphError::TooLarge);
        } else {
            self.names.sort(&mut errors);
        }
        GraphBuilder {
            names: self.names,
            pairs: Vec::new(),
            flows: Flows::default(),
            lists: Lists::default(),
            errors,
            too_large: self.too_large,
        }
    }
}

/// A graph whose edges are still coming.
#[derive(Debug)]
pub struct GraphBuilder {
    names: Names,
    /// `(from, to, list of flows)`.
    pairs: Vec<(u32, u32, u32)>,
    flows: Flows,
    lists: Lists,
    errors: Errors,
    too_large: bool,
}

impl GraphBuilder {
    /// The next edge.
    pub fn edge(&mut self, edge: &EdgeItem) {
        if self.too_large {
            return;
        }
        let (from, to) = (self.names.find(&edge.from), self.names.find(&edge.to));
        for (end, id) in [(&edge.from, from), (&edge.to, to)] {
            if id.is_none() {
                self.errors.push(GraphError::UnknownEnd {
                    from: edge.from.clone(),
                    to: edge.to.clone(),
                    missing: end.clone(),
                });
            }
        }
        let (Some(from), Some(to)) = (from, to) else {
            return;
        };
        if from == to {
            self.errors.push(GraphError::SelfEdge(edge.from.clone()));
            return;
        }
        match self.lists.id(&edge.values) {
            Some(list) => self.pairs.push((from, to, list)),
            None => self.errors.push(GraphError::TooLarge),
        }
        self.flows.add(from, edge, &mut self.errors);
    }

    /// Checks and builds the graph.
    ///
    /// # Errors
    /// Up to [`ERRORS_MAX`] reasons. A cycle is looked for only where every edge is sound.
    pub fn finish(mut self) -> Result<Graph, Vec<GraphError>> {
        if self.too_large || u32::try_from(self.pairs.len()).is_err() {
            return Err(vec![GraphError::TooLarge]);
        }
        let (names, mut pairs) = (self.names, self.pairs);
        pairs.sort_unstable();
        for window in pairs.windows(2) {
            if let [a, b] = window
                && (a.0, a.1) == (b.0, b.1)
            {
                self.errors.push(GraphError::DuplicateEdge { from: names.get(a.0), to: names.get(a.1) });
            }
        }
        self.flows.check(&names, &mut self.errors);
        if !self.errors.list.is_empty() {
            return Err(self.errors.list);
        }
        let upstreams = Adjacency::new(names.len(), pairs.iter().map(|(from, to, _)| (*from, *to)));
        let dependents = Adjacency::new(names.len(), pairs.iter().map(|(from, to, _)| (*to, *from)));
        // Sorted by node and neighbour, as the upstreams lie in their array.
        let list_of = pairs.iter().map(|(_, _, list)| *list).collect();
        match topological_order(&upstreams, &dependents) {
            Ok(order) => Ok(Graph { names, upstreams, dependents, list_of, lists: self.lists.all, order }),
            Err(cyclic) => {
                let cycle = shortest_cycle(&upstreams, &dependents, &cyclic);
                Err(vec![GraphError::Cycle(cycle.into_iter().map(|id| names.get(id)).collect())])
            }
        }
    }
}

impl Graph {
    /// Checks and builds the graph of one output.
    ///
    /// # Errors
    /// Up to [`ERRORS_MAX`] reasons. A cycle is looked for only where every edge is sound.
    pub fn build<K, N, E>(
        children: impl IntoIterator<Item = (K, N)>,
        edges: impl IntoIterator<Item = E>,
    ) -> Result<Self, Vec<GraphError>>
    where
        K: AsRef<str>,
        N: AsRef<str>,
        E: Borrow<EdgeItem>,
    {
        let mut named = Children::default();
        for (kind, name) in children {
            named.push(kind.as_ref(), name.as_ref());
        }
        let mut builder = named.seal();
        for edge in edges {
            builder.edge(edge.borrow());
        }
        builder.finish()
    }

    /// Number of children.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no children.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The child with this id.
    ///
    /// # Panics
    /// When there is none.
    pub fn child(&self, id: u32) -> ResourceRef {
        self.names.get(id)
    }

    /// The id of a child.
    pub fn id(&self, child: &ResourceRef) -> Option<u32> {
        self.names.find(child)
    }

    /// What this child depends on, ascending.
    pub fn upstreams(&self, id: u32) -> &[u32] {
        self.upstreams.of(id)
    }

    /// What this child depends on, ascending, each with the values that the edge carries.
    pub fn edges(&self, id: u32) -> impl Iterator<Item = (u32, &[FieldFlow])> {
        let lists = &self.list_of[self.upstreams.range(id)];
        self.upstreams(id).iter().zip(lists).map(|(to, list)| (*to, self.lists[*list as usize].as_slice()))
    }

    /// What depends on this child, ascending.
    pub fn dependents(&self, id: u32) -> &[u32] {
        self.dependents.of(id)
    }

    /// Every child after all of its upstreams; otherwise in the order of the output.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
}

/// Kahn's algorithm, always taking the ready child that comes first in the output, so that the order depends on
/// nothing but the output. Err: which children lie on a cycle or behind one.
fn topological_order(upstreams: &Adjacency, dependents: &Adjacency) -> Result<Vec<u32>, Vec<bool>> {
    let count = upstreams.len();
    let mut waiting_for: Vec<u32> = upstreams.counts();
    let mut ready: BinaryHeap<Reverse<u32>> =
        upstreams.ids().filter(|id| waiting_for[*id as usize] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(id)) = ready.pop() {
        order.push(id);
        for dependent in dependents.of(id) {
            let left = &mut waiting_for[*dependent as usize];
            *left -= 1;
            if *left == 0 {
                ready.push(Reverse(*dependent));
            }
        }
    }
    if order.len() == count { Ok(order) } else { Err(waiting_for.iter().map(|left| *left > 0).collect()) }
}

/// Neighbours of every node, in one array with a start per node.
#[derive(Debug)]
pub(super) struct Adjacency {
    starts: Vec<u32>,
    neighbours: Vec<u32>,
}

impl Adjacency {
    /// From `(node, neighbour)` pairs, sorted by neighbour within a node; the caller has checked that ids and counts
    /// fit 32 bits.
    fn new(nodes: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        for (node, _) in pairs.clone() {
            starts[node as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0; starts[nodes] as usize];
        for (node, neighbour) in pairs {
            let place = &mut next[node as usize];
            neighbours[*place as usize] = neighbour;
            *place += 1;
        }
        Self { starts, neighbours }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        // `Names::push` bounded the count to 32 bits.
        (0..=u32::MAX).take(self.len())
    }

    pub(super) fn of(&self, node: u32) -> &[u32] {
        &self.neighbours[self.range(node)]
    }

    fn range(&self, node: u32) -> std::ops::Range<usize> {
        let node = node as usize;
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    fn counts(&self) -> Vec<u32> {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

/// `(kind, name)` of every child, and back from it to the id.
#[derive(Debug)]
struct Names {
    /// All names, one after another.
    text: String,
    /// Where each name starts, and the end.
    starts: Vec<u32>,
    /// Index into `kinds` per child.
    kind_of: Vec<u32>,
    kinds: Vec<String>,
    /// Ids ordered by kind (as text) and name, for lookup.
    sorted: Vec<u32>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            text: String::new(),
            starts: vec![0],
            kind_of: Vec::new(),
            kinds: Vec::new(),
            sorted: Vec::new(),
        }
    }
}

impl Names {
    /// None: too many for 32 bits.
    fn push(&mut self, kind: &str, name: &str, kind_ids: &mut HashMap<String, u32>) -> Option<()> {
        let kind_id = match kind_ids.get(kind) {
            Some(id) => *id,
            None => {
                let id = u32::try_from(self.kinds.len()).ok()?;
                self.kinds.push(kind.to_owned());
                kind_ids.insert(kind.to_owned(), id);
                id
            }
        };
        let end = u32::try_from(self.text.len() + name.len()).ok()?;
        u32::try_from(self.kind_of.len() + 1).ok()?;
        self.text.push_str(name);
        self.starts.push(end);
        self.kind_of.push(kind_id);
        Some(())
    }

    /// Readies the look-up by name.
    fn sort(&mut self, errors: &mut Errors) {
        // `push` bounded the count to 32 bits.
        let mut sorted: Vec<u32> = (0..=u32::MAX).take(self.len()).collect();
        sorted.sort_unstable_by(|a, b| self.key(*a).cmp(&self.key(*b)));
        for window in sorted.windows(2) {
            if let [a, b] = window
                && self.key(*a) == self.key(*b)
            {
                errors.push(GraphError::DuplicateChild(self.get(*a)));
            }
        }
        self.sorted = sorted;
    }

    fn len(&self) -> usize {
        self.kind_of.len()
    }

    fn key(&self, id: u32) -> (&str, &str) {
        let id = id as usize;
        let name = &self.text[self.starts[id] as usize..self.starts[id + 1] as usize];
        (&self.kinds[self.kind_of[id] as usize], name)
    }

    fn get(&self, id: u32) -> ResourceRef {
        let (kind, name) = self.key(id);
        ResourceRef::new(kind, name)
    }

    fn find(&self, child: &ResourceRef) -> Option<u32> {
        let wanted = (child.kind.as_str(), child.name.as_str());
        let place = self.sorted.binary_search_by(|id| self.key(*id).cmp(&wanted)).ok()?;
        Some(self.sorted[place])
    }
}

/// The distinct lists of flows that edges carry: a composer writes few kinds of edges, if many of each.
#[derive(Debug, Default)]
struct Lists {
    ids: HashMap<Vec<FieldFlow>, u32>,
    all: Vec<Vec<FieldFlow>>,
}

impl Lists {
    /// None: too many for 32 bits.
    fn id(&mut self, list: &[FieldFlow]) -> Option<u32> {
        if let Some(id) = self.ids.get(list) {
            return Some(*id);
        }
        let id = u32::try_from(self.all.len()).ok()?;
        self.all.push(list.to_vec());
        self.ids.insert(list.to_vec(), id);
        Some(id)
    }
}

/// Targets of all value flows: few distinct pointers, written into many children.
#[derive(Debug, Default)]
struct Flows {
    ids: HashMap<String, u32>,
    pointers: Vec<Pointer>,
    /// `(child, pointer)`.
    targets: Vec<(u32, u32)>,
}

impl Flows {
    fn add(&mut self, child: u32, edge: &EdgeItem, errors: &mut Errors) {
        for flow in &edge.values {
            let mut bad = |field: &String, message: String| {
                let (from, to, field) = (edge.from.clone(), edge.to.clone(), field.clone());
                errors.push(GraphError::BadPointer { from, to, field, message });
            };
            if let Err(error) = Pointer::parse(&flow.source_field) {
                bad(&flow.source_field, error.to_string());
            }
            let id = match self.ids.get(&flow.dependent_field) {
                Some(id) => *id,
                None => match (Pointer::parse(&flow.dependent_field), u32::try_from(self.pointers.len())) {
                    (Ok(pointer), Ok(id)) => {
                        self.pointers.push(pointer);
                        self.ids.insert(flow.dependent_field.clone(), id);
                        id
                    }
                    (Err(error), _) => {
                        bad(&flow.dependent_field, error.to_string());
                        continue;
                    }
                    (_, Err(_)) => {
                        errors.push(GraphError::TooLarge);
                        continue;
                    }
                },
            };
            self.targets.push((child, id));
        }
    }

    fn check(mut self, names: &Names, errors: &mut Errors) {
        self.targets.sort_unstable();
        for group in self.targets.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
            let targets = group.iter().map(|(_, pointer)| &self.pointers[*pointer as usize]);
            for (outer, inner) in overlapping_targets(targets) {
                let message = overlap_message(outer, inner);
                errors.push(GraphError::OverlappingFlows { child: names.get(group[0].0), message });
            }
        }
    }
}

/// At most [`ERRORS_MAX`]: a broken composer may make a million of the same.
#[derive(Debug, Default)]
struct Errors {
    list: Vec<GraphError>,
}

impl Errors {
    fn push(&mut self, error: GraphError) {
        if self.list.len() < ERRORS_MAX {
            self.list.push(error);
        }
    }
}

/// Names of a cycle for people: a long one is cut in the middle.
fn cycle_text(cycle: &[ResourceRef]) -> String {
    const SHOWN: usize = 20;
    let mut steps: Vec<String> = cycle.iter().take(SHOWN).map(ResourceRef::to_string).collect();
    if cycle.len() > SHOWN {
        steps.push(format!("({} more)", cycle.len() - SHOWN));
    }
    steps.extend(cycle.first().map(ResourceRef::to_string));
    steps.join(" -> ")
}

#[cfg(test)]
mod tests;
