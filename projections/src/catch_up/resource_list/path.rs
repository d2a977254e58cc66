//! Where a resource stands in its tree, as a text that sorts depth-first.
//!
//! A node's path is its owner's path plus one segment per level below the root: a separator, its kind, a
//! separator, its name, a separator, its id. The separator sorts below every character a kind or name may
//! have, so in byte order (the column is COLLATE "C") a node comes right before its descendants, and
//! siblings come in (kind, name, id) order. The root's own path is empty: the index leads with the root.
//!
//! An index entry cannot grow without bound, so paths are cut at [`PATH_BYTES_MAX`]. Below that depth
//! nodes of one branch share a path and are ordered by (depth, id): still one total order, owners before
//! what they own, no node twice and none hidden; only "depth-first" turns into "level by level" down there.

use converge_domain::ResourceId;

/// Longest path, in bytes. An entry of the index must stay under 2,700 with its other columns.
pub const PATH_BYTES_MAX: usize = 2_000;

const SEPARATOR: char = '\u{1}';

/// The path of a child under an owner's path.
pub fn below(owner: &str, kind: &str, name: &str, id: ResourceId) -> String {
    let id = id.0.simple();
    let mut path = format!("{owner}{SEPARATOR}{kind}{SEPARATOR}{name}{SEPARATOR}{id}");
    if path.len() > PATH_BYTES_MAX {
        let mut end = PATH_BYTES_MAX;
        while !path.is_char_boundary(end) {
            end -= 1;
        }
        path.truncate(end);
    }
    path
}

/// True when a path may have been cut, so that others may be equal to it or seem to be below it.
pub const fn is_cut(path: &str) -> bool {
    // Cutting goes back to a character boundary, by at most three bytes.
    path.len() + 3 >= PATH_BYTES_MAX
}

/// The first path behind `path` and everything below it.
pub fn end_of_subtree(path: &str) -> String {
    // A descendant continues with the separator; the next character up ends the range.
    format!("{path}\u{2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> ResourceId {
        ResourceId(uuid::Uuid::from_u128(n))
    }

    #[test]
    fn a_node_comes_before_its_descendants_and_they_before_its_next_sibling() {
        let a = below("", "team", "a", id(9));
        let a_child = below(&a, "zone", "z", id(1));
        let a_dash = below("", "team", "a-b", id(2));
        let other_kind = below("", "vpc", "a", id(3));
        let mut sorted = vec![other_kind.clone(), a_dash.clone(), a_child.clone(), a.clone()];
        sorted.sort();
        assert_eq!(sorted, [a.clone(), a_child.clone(), a_dash.clone(), other_kind]);
        assert!(a_child < end_of_subtree(&a) && a_dash > end_of_subtree(&a));
    }

    #[test]
    fn a_path_never_outgrows_an_index_entry_however_deep_the_tree() {
        let mut path = String::new();
        for level in 0..100 {
            path = below(&path, "composer", &"é".repeat(60), id(level));
            assert!(path.len() <= PATH_BYTES_MAX);
        }
    }
}
