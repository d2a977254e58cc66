//! Which outputs are graphs, and in which order their children come.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn reference(name: &str) -> ResourceRef {
    ResourceRef::new("k", name)
}

fn edge(from: &str, to: &str) -> EdgeItem {
    EdgeItem { from: reference(from), to: reference(to), values: Vec::new() }
}

fn flow(from: &str, to: &str, dependent_field: &str) -> EdgeItem {
    let values = vec![crate::resource::FieldFlow {
        dependent_field: dependent_field.into(),
        source_field: "/s".into(),
    }];
    EdgeItem { values, ..edge(from, to) }
}

fn build(children: &[&str], edges: &[EdgeItem]) -> Result<Graph, Vec<GraphError>> {
    Graph::build(children.iter().map(|name| ("k", name)), edges)
}

fn errors(children: &[&str], edges: &[EdgeItem]) -> Vec<String> {
    build(children, edges).unwrap_err().iter().map(GraphError::to_string).collect()
}

fn numbered(count: u32, pairs: &[(u32, u32)]) -> Result<Graph, Vec<GraphError>> {
    let edges = pairs.iter().map(|(from, to)| edge(&format!("n{from}"), &format!("n{to}")));
    Graph::build((0..count).map(|n| ("k", format!("n{n}"))), edges)
}

fn cycle(count: u32, pairs: &[(u32, u32)]) -> Vec<u32> {
    match numbered(count, pairs).unwrap_err().as_slice() {
        [GraphError::Cycle(cycle)] => cycle.iter().map(|r| r.name[1..].parse().unwrap()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn upstreams_come_first_and_otherwise_the_output_decides() {
    let graph = build(&["c", "x", "a", "b"], &[edge("c", "b"), edge("b", "a"), edge("c", "a")]).unwrap();
    let names: Vec<_> = graph.order().iter().map(|id| graph.child(*id).name).collect();
    assert_eq!(names, ["x", "a", "b", "c"]);
    let c = graph.id(&reference("c")).unwrap();
    let a = graph.id(&reference("a")).unwrap();
    assert_eq!(graph.upstreams(c), [2, 3]);
    assert_eq!(graph.dependents(a), [0, 3]);
    assert_eq!(graph.id(&reference("z")), None);
    assert_eq!(graph.id(&ResourceRef::new("other", "a")), None);
}

#[test]
fn everything_wrong_with_an_output_is_said_at_once() {
    let edges = [
        edge("a", "b"),
        edge("a", "b"),
        edge("a", "a"),
        edge("a", "ghost"),
        flow("b", "c", "/x"),
        flow("b", "d", "/x/y"),
        flow("c", "d", "bad"),
    ];
    assert_eq!(
        errors(&["a", "b", "c", "d", "b"], &edges),
        [
            "k/b appears twice among the children",
            "k/a depends on itself",
            "the edge k/a -> k/ghost names k/ghost, which is not among the children",
            "the edge k/c -> k/d carries `bad`: a pointer is empty or starts with `/`",
            "the edge k/a -> k/b appears twice",
            "k/b: a value flow writes `/x/y` inside `/x`, which another writes whole",
        ]
    );
}

#[test]
fn the_same_target_may_be_filled_in_two_children_but_not_twice_in_one() {
    assert!(
        build(&["a", "b", "c"], &[flow("a", "c", "/x"), flow("b", "c", "/x"), flow("a", "b", "/y")]).is_ok()
    );
    assert_eq!(
        errors(&["a", "b", "c"], &[flow("a", "c", "/x"), flow("a", "b", "/x")]),
        ["k/a: two value flows write `/x`"]
    );
}

#[test]
fn the_shortest_cycle_is_named() {
    assert_eq!(
        errors(
            &["a", "b", "c", "d"],
            &[edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("c", "d"), edge("d", "c")]
        ),
        ["the children depend on each other in a cycle: k/c -> k/d -> k/c"]
    );
    // A ring without junctions, a shorter one far away, and a path between two rings.
    assert_eq!(cycle(3, &[(0, 1), (1, 2), (2, 0)]).len(), 3);
    assert_eq!(cycle(9, &[(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (5, 6), (6, 7), (7, 8), (8, 5)]), [3, 4]);
    assert_eq!(cycle(6, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 4)]), [4, 5]);
}

#[test]
fn a_long_cycle_is_found_without_trying_every_node() {
    let count = 200_000;
    let ring: Vec<_> = (0..count).map(|n| (n, (n + 1) % count)).collect();
    assert_eq!(cycle(count, &ring).len(), count as usize);
}

#[test]
fn a_chain_of_a_hundred_thousand_children_is_ordered() {
    let count = 100_000;
    let chain: Vec<_> = (1..count).map(|n| (n - 1, n)).collect();
    let graph = numbered(count, &chain).unwrap();
    assert!(graph.order().iter().copied().eq((0..count).rev()));
    assert_eq!((graph.len(), graph.is_empty()), (count as usize, false));
    assert!(numbered(0, &[]).unwrap().is_empty());
}

#[test]
fn the_number_of_reported_errors_is_bounded() {
    let many: Vec<_> = (0..1000).map(|_| edge("a", "ghost")).collect();
    assert_eq!(errors(&["a"], &many).len(), ERRORS_MAX);
}

/// The length of the shortest cycle by brute force.
fn girth(count: u32, pairs: &[(u32, u32)]) -> Option<usize> {
    (0..count)
        .filter_map(|start| {
            let mut frontier = HashSet::from([start]);
            (1..=count as usize).find(|_| {
                frontier =
                    pairs.iter().filter(|(from, _)| frontier.contains(from)).map(|(_, to)| *to).collect();
                frontier.contains(&start)
            })
        })
        .min()
}

proptest! {
    #[test]
    fn orders_respect_edges_and_cycles_are_shortest(
        count in 2_u32..9, raw in prop::collection::hash_set((0_u32..9, 0_u32..9), 0..16)
    ) {
        let pairs: Vec<_> =
            raw.into_iter().filter(|(from, to)| from != to && *from < count && *to < count).collect();
        match (numbered(count, &pairs), girth(count, &pairs)) {
            (Ok(graph), None) => {
                let mut place = vec![usize::MAX; count as usize];
                for (at, id) in graph.order().iter().enumerate() {
                    place[*id as usize] = at;
                }
                prop_assert_eq!(graph.order().len(), count as usize);
                for (from, to) in &pairs {
                    prop_assert!(place[*to as usize] < place[*from as usize]);
                    prop_assert!(graph.upstreams(*from).contains(to) && graph.dependents(*to).contains(from));
                }
            }
            (Err(_), Some(length)) => {
                let found = cycle(count, &pairs);
                prop_assert_eq!(found.len(), length);
                for (at, node) in found.iter().enumerate() {
                    prop_assert!(pairs.contains(&(*node, found[(at + 1) % found.len()])));
                }
            }
            (built, girth) => prop_assert!(false, "{built:?} {girth:?}"),
        }
    }
}

#[test]
fn an_edge_keeps_the_values_it_carries() {
    let graph =
        build(&["a", "b", "c"], &[flow("c", "b", "/x"), edge("c", "a"), flow("b", "a", "/x")]).unwrap();
    let of = |id| -> Vec<_> {
        graph
            .edges(id)
            .map(|(to, flows)| (to, flows.iter().map(|f| f.dependent_field.clone()).collect::<Vec<_>>()))
            .collect()
    };
    assert_eq!(of(2), [(0, vec![]), (1, vec!["/x".to_owned()])]);
    assert_eq!(of(1), [(0, vec!["/x".to_owned()])]);
    assert_eq!(of(0), []);
}
