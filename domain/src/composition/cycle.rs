//! Finding the shortest dependency cycle, so that a composer's author can read it.

use super::graph::Adjacency;
use std::collections::VecDeque;

/// Edges looked at before the search settles for the shortest cycle found so far. Only graphs with many thousands of
/// entangled children and no short cycle come near it.
const EFFORT_MAX: usize = 50_000_000;

/// The shortest cycle, each node needing the next and the last the first. `cyclic` marks nodes among which there is
/// at least one cycle.
///
/// A breadth-first search from a node finds the shortest cycle through it, and need not look further than the best
/// so far. Not every node is tried: a node with one way in and one way out lies on the same cycles as its
/// neighbour, so only junctions are, and cycles without any junction are walked once.
pub(super) fn shortest_cycle(upstreams: &Adjacency, dependents: &Adjacency, cyclic: &[bool]) -> Vec<u32> {
    let mut search = Search::new(upstreams, trimmed(upstreams, dependents, cyclic));
    let ways = |adjacency: &Adjacency, node: u32, kept: &[bool]| {
        adjacency.of(node).iter().filter(|other| kept[**other as usize]).count()
    };
    let kept = search.kept.clone();
    let mut walked = vec![false; kept.len()];
    for node in upstreams.ids().filter(|node| kept[*node as usize]) {
        let junction = ways(upstreams, node, &kept) != 1 || ways(dependents, node, &kept) != 1;
        if junction {
            search.from(node);
        } else if !walked[node as usize] {
            search.walk(node, &mut walked, |node| ways(dependents, node, &kept) == 1);
        }
    }
    search.best
}

/// Without nodes that have no way on or no way in, again and again: what is left lies on cycles or between them.
fn trimmed(upstreams: &Adjacency, dependents: &Adjacency, cyclic: &[bool]) -> Vec<bool> {
    let mut kept = cyclic.to_vec();
    for (forth, back) in [(upstreams, dependents), (dependents, upstreams)] {
        let mut ways: Vec<usize> = forth
            .ids()
            .map(|node| forth.of(node).iter().filter(|other| kept[**other as usize]).count())
            .collect();
        let mut open: Vec<u32> =
            forth.ids().filter(|node| kept[*node as usize] && ways[*node as usize] == 0).collect();
        while let Some(node) = open.pop() {
            kept[node as usize] = false;
            for other in back.of(node).iter().filter(|other| kept[**other as usize]) {
                let left = &mut ways[*other as usize];
                *left -= 1;
                if *left == 0 {
                    open.push(*other);
                }
            }
        }
    }
    kept
}

struct Search<'g> {
    upstreams: &'g Adjacency,
    kept: Vec<bool>,
    best: Vec<u32>,
    effort: usize,
    /// The search that reached a node last, and from where.
    seen_by: Vec<u32>,
    reached_from: Vec<u32>,
    searches: u32,
}

impl<'g> Search<'g> {
    fn new(upstreams: &'g Adjacency, kept: Vec<bool>) -> Self {
        let count = kept.len();
        Self {
            upstreams,
            kept,
            best: Vec::new(),
            effort: 0,
            seen_by: vec![0; count],
            reached_from: vec![0; count],
            searches: 0,
        }
    }

    /// Breadth-first from `start` until it is met again.
    fn from(&mut self, start: u32) {
        if self.effort > EFFORT_MAX && !self.best.is_empty() {
            return;
        }
        self.searches += 1;
        let mut open = VecDeque::from([(start, 1_usize)]);
        while let Some((node, length)) = open.pop_front() {
            // A cycle closed from here would have `length` nodes.
            if !self.best.is_empty() && length >= self.best.len() {
                return;
            }
            for next in self.upstreams.of(node).iter().copied().filter(|next| self.kept[*next as usize]) {
                self.effort += 1;
                if next == start {
                    self.best = self.path(start, node);
                    return;
                }
                if self.seen_by[next as usize] != self.searches {
                    self.seen_by[next as usize] = self.searches;
                    self.reached_from[next as usize] = node;
                    open.push_back((next, length + 1));
                }
            }
        }
    }

    fn path(&self, start: u32, end: u32) -> Vec<u32> {
        let mut path = vec![end];
        let mut node = end;
        while node != start {
            node = self.reached_from[node as usize];
            path.push(node);
        }
        path.reverse();
        path
    }

    /// Follows the only way on from `start`; a cycle, when it comes back before any junction.
    fn walk(&mut self, start: u32, walked: &mut [bool], one_way_in: impl Fn(u32) -> bool) {
        let mut path = vec![start];
        walked[start as usize] = true;
        let mut node = start;
        loop {
            let mut ways = self.upstreams.of(node).iter().copied().filter(|next| self.kept[*next as usize]);
            let (Some(next), None) = (ways.next(), ways.next()) else {
                return;
            };
            if next == start {
                if self.best.is_empty() || path.len() < self.best.len() {
                    self.best = path;
                }
                return;
            }
            if walked[next as usize] || !one_way_in(next) {
                return;
            }
            walked[next as usize] = true;
            path.push(next);
            node = next;
        }
    }
}
