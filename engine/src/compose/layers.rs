//! In which order a pass writes.
//!
//! An edge may be written only once its upstream stands under the very id that the edge names. Two processes may apply
//! one pass, each with ids of its own for names that were free when it looked; the one that finds such a name taken
//! starts again with the holder's id. Had it written an edge to its own id before it found out, and the other completed the
//! pass meanwhile, that edge would lead nowhere for ever. So children go in layers, and a layer is begun when all before
//! it are done.

use converge_domain::ResourceId;
use converge_domain::resource::Edge;
use std::collections::HashMap;

/// The children of `upstreams_first`, which lists each after its upstreams, by the length of the longest way down to
/// one without upstreams. `id_of` gives the id of the child at an index.
pub(super) fn layers(
    upstreams_first: &[u32],
    id_of: impl Fn(u32) -> Option<ResourceId>,
    edges: &HashMap<ResourceId, Vec<Edge>>,
) -> Vec<Vec<u32>> {
    let mut depths: HashMap<ResourceId, usize> = HashMap::with_capacity(upstreams_first.len());
    let mut layers: Vec<Vec<u32>> = Vec::new();
    for index in upstreams_first {
        let Some(id) = id_of(*index) else { continue };
        let upstreams = edges.get(&id).into_iter().flatten();
        let depth = upstreams
            .filter_map(|edge| depths.get(&edge.upstream))
            .map(|upstream| upstream + 1)
            .max()
            .unwrap_or(0);
        depths.insert(id, depth);
        if layers.len() <= depth {
            layers.resize_with(depth + 1, Vec::new);
        }
        if let Some(layer) = layers.get_mut(depth) {
            layer.push(*index);
        }
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use converge_domain::ResourceRef;
    use uuid::Uuid;

    fn id(n: u32) -> ResourceId {
        ResourceId(Uuid::from_u128(u128::from(n) + 1))
    }

    #[test]
    fn a_child_is_written_after_all_of_its_upstreams() {
        let edge =
            |to: u32| Edge { upstream: id(to), upstream_ref: ResourceRef::new("x", "y"), values: vec![] };
        // 3 needs 1 and 2, 1 needs 0; 2 and 4 need nothing.
        let edges = HashMap::from([(id(3), vec![edge(1), edge(2)]), (id(1), vec![edge(0)])]);
        let layers = layers(&[0, 1, 2, 3, 4], |index| Some(id(index)), &edges);
        assert_eq!(layers, vec![vec![0, 2, 4], vec![1], vec![3]]);
    }
}
