//! What a composition would change: the pure comparison behind passes and plans.

use super::{ChildItem, EdgeItem};
use crate::ids::ResourceRef;
use crate::json;
use crate::resource::FieldFlow;
use std::collections::{BTreeMap, HashMap};

/// Labels that users set on an owned child; a composer neither sets nor removes them.
const USER_LABEL_PREFIX: &str = "user/";

/// A child with the edges that start at it.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    pub child: &'a ChildItem,
    pub edges: &'a [EdgeItem],
}

/// The four ways a child can stand to a new composition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diff {
    /// Wanted and not there, in order of the output.
    pub create: Vec<ResourceRef>,
    /// There and wanted otherwise, in order of the output.
    pub update: Vec<ResourceRef>,
    /// There as wanted, in order of the output.
    pub unchanged: Vec<ResourceRef>,
    /// There and no longer wanted, in the order they were given.
    pub drop: Vec<ResourceRef>,
}

impl Diff {
    /// Whether applying it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.create.is_empty() && self.update.is_empty() && self.drop.is_empty()
    }
}

/// Compares what a composer owns with what it wants, by `(kind, name)`.
///
/// A child is unchanged when version, spec, labels, provider config and edges are equal (JSON by value, edges and flows
/// in any order); a wanted child that leaves `deletion_protection` out keeps it, and labels of users and of the system
/// are not the composer's to change.
pub fn diff<'a>(
    existing: impl IntoIterator<Item = Node<'a>>,
    wanted: impl IntoIterator<Item = Node<'a>>,
) -> Diff {
    let mut order = Vec::new();
    let mut left: HashMap<(&str, &str), Node<'a>> = HashMap::new();
    for node in existing {
        let key = (node.child.kind.as_str(), node.child.name.as_str());
        order.push(key);
        left.insert(key, node);
    }
    let mut diff = Diff::default();
    for node in wanted {
        let reference = node.child.reference();
        match left.remove(&(node.child.kind.as_str(), node.child.name.as_str())) {
            None => diff.create.push(reference),
            Some(present) if same(&present, &node) => diff.unchanged.push(reference),
            Some(_) => diff.update.push(reference),
        }
    }
    diff.drop = order
        .into_iter()
        .filter(|key| left.contains_key(key))
        .map(|(kind, name)| ResourceRef::new(kind, name))
        .collect();
    diff
}

fn same(present: &Node<'_>, wanted: &Node<'_>) -> bool {
    let (a, b) = (present.child, wanted.child);
    a.kind_version == b.kind_version
        && a.provider_config_ref == b.provider_config_ref
        && b.deletion_protection.is_none_or(|on| a.deletion_protection.unwrap_or(false) == on)
        && own_labels(&a.labels).eq(own_labels(&b.labels))
        && json::equal(&a.spec, &b.spec)
        && edges(present.edges) == edges(wanted.edges)
}

fn own_labels(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    labels.iter().filter(|(key, _)| {
        !key.starts_with(USER_LABEL_PREFIX) && !key.starts_with(crate::document::names::RESERVED_LABEL_PREFIX)
    })
}

fn edges(edges: &[EdgeItem]) -> BTreeMap<&ResourceRef, Vec<&FieldFlow>> {
    edges
        .iter()
        .map(|edge| {
            let mut flows: Vec<_> = edge.values.iter().collect();
            flows.sort_unstable();
            (&edge.to, flows)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn child(name: &str, spec: Value) -> ChildItem {
        ChildItem::parse(json!({"kind": "vpc", "kind_version": 1, "name": name, "spec": spec})).unwrap()
    }

    fn nodes(children: &[ChildItem]) -> Vec<Node<'_>> {
        children.iter().map(|child| Node { child, edges: &[] }).collect()
    }

    fn names(references: &[ResourceRef]) -> Vec<&str> {
        references.iter().map(|reference| reference.name.as_str()).collect()
    }

    #[test]
    fn children_are_made_changed_kept_and_dropped_by_kind_and_name() {
        let existing = [child("a", json!({"n": 1})), child("b", json!({})), child("c", json!({"x": null}))];
        let wanted = [child("d", json!({})), child("c", json!({})), child("a", json!({"n": 1.0}))];
        let diff = diff(nodes(&existing), nodes(&wanted));
        assert_eq!(names(&diff.create), ["d"]);
        assert_eq!(names(&diff.update), ["c"]);
        assert_eq!(names(&diff.unchanged), ["a"]);
        assert_eq!(names(&diff.drop), ["b"]);
    }

    #[test]
    fn composing_twice_from_the_same_output_changes_nothing() {
        let children = [child("a", json!({"l": [1, {}]})), child("b", json!(null))];
        assert!(diff(nodes(&children), nodes(&children)).is_empty());
        assert!(!diff(nodes(&children), nodes(&[])).is_empty());
    }

    #[test]
    fn every_part_of_a_child_counts_except_what_is_not_the_composers() {
        let base = child("a", json!({}));
        let changed = |change: fn(&mut ChildItem)| {
            let (mut present, wanted) = (base.clone(), base.clone());
            change(&mut present);
            !diff(nodes(&[present]), nodes(&[wanted])).update.is_empty()
        };
        assert!(changed(|c| c.kind_version = 2));
        assert!(changed(|c| c.provider_config_ref = Some("x".into())));
        assert!(changed(|c| {
            c.labels.insert("team".into(), "a".into());
        }));
        assert!(!changed(|c| {
            c.labels.insert("user/note".into(), "a".into());
            c.labels.insert("converge.sh/app".into(), "a".into());
        }));
        assert!(!changed(|c| c.deletion_protection = Some(true)));
    }

    #[test]
    fn edges_count_in_any_order() {
        let a = child("a", json!({}));
        let edge = |to: &str, field: &str| {
            EdgeItem::parse(json!({"from": {"kind": "vpc", "name": "a"}, "to": {"kind": "x", "name": to},
                "values": [{"dependent_field": field, "source_field": "/s"}]}))
            .unwrap()
        };
        let is_same = |before: &[EdgeItem], after: &[EdgeItem]| {
            diff([Node { child: &a, edges: before }], [Node { child: &a, edges: after }]).is_empty()
        };
        assert!(is_same(&[edge("p", "/1"), edge("q", "/2")], &[edge("q", "/2"), edge("p", "/1")]));
        assert!(!is_same(&[edge("p", "/1")], &[edge("p", "/2")]));
        assert!(!is_same(&[edge("p", "/1")], &[]));
    }
}
