//! In which order a pass writes.
//!
//! An edge may be written only once its upstream stands under the very id that the edge names. Two processes may apply
//! one pass, each with ids of its own for names that were free when it looked; the one that finds such a name taken
//! starts again with the holder's id. Had it written an edge to its own id before it found out, and the other completed the
//! pass meanwhile, that edge would lead nowhere for ever. So children go in layers, and a layer is begun when all before
//! it are done.

use converge_domain::composition::Graph;

/// The children of `graph` by the length of the longest way down to one without upstreams.
pub(super) fn layers(graph: &Graph) -> Vec<Vec<u32>> {
    let mut depths = vec![0_usize; graph.len()];
    let mut layers: Vec<Vec<u32>> = Vec::new();
    // The order lists each child after its upstreams, so their depths are known.
    for child in graph.order() {
        let upstreams = graph.upstreams(*child).iter();
        let depth = upstreams.map(|upstream| depths[*upstream as usize] + 1).max().unwrap_or(0);
        depths[*child as usize] = depth;
        if layers.len() <= depth {
            layers.resize_with(depth + 1, Vec::new);
        }
        layers[depth].push(*child);
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use converge_domain::ResourceRef;
    use converge_domain::composition::EdgeItem;

    #[test]
    fn a_child_is_written_after_all_of_its_upstreams() {
        let edge = |(from, to): (u32, u32)| EdgeItem {
            from: ResourceRef::new("k", from.to_string()),
            to: ResourceRef::new("k", to.to_string()),
            values: vec![],
        };
        // 3 needs 1 and 2, 1 needs 0; 2 and 4 need nothing.
        let graph =
            Graph::build((0..5).map(|child| ("k", child.to_string())), [(3, 1), (3, 2), (1, 0)].map(edge));
        assert_eq!(layers(&graph.unwrap()), vec![vec![0, 2, 4], vec![1], vec![3]]);
    }
}
