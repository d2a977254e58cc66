//! What to list, and where in the list.

use converge_domain::ResourceId;
use converge_domain::resource::{Phase, ResourceState};
use std::collections::BTreeMap;

/// Which resources to show. Everything given must hold; the default shows all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    pub kind: Option<String>,
    /// Any of these; empty: any phase.
    pub phases: Vec<Phase>,
    pub name_prefix: Option<String>,
    /// All of these labels, with these values.
    pub labels: BTreeMap<String, String>,
    /// Direct children of it.
    pub owner: Option<ResourceId>,
    /// It, and everything below it.
    pub root: Option<ResourceId>,
}

/// A row's place in the one order of every list.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Key {
    pub kind: String,
    pub name: String,
    pub id: ResourceId,
}

impl Filter {
    /// The part of the filter that never changes for one resource: kind, name, owner, root.
    pub fn admits_identity(&self, kind: &str, name: &str, id: ResourceId, ancestors: &[ResourceId]) -> bool {
        self.kind.as_deref().is_none_or(|wanted| wanted == kind)
            && self.name_prefix.as_deref().is_none_or(|prefix| name.starts_with(prefix))
            && self.owner.is_none_or(|owner| ancestors.first() == Some(&owner))
            && self.root.is_none_or(|root| *ancestors.last().unwrap_or(&id) == root)
    }

    /// Whether it rules nothing out.
    pub fn admits_all(&self) -> bool {
        *self == Self::default()
    }

    /// The whole filter, on a folded state; the same answer as the list's queries give. A resource that
    /// does not exist (any more) is in no list.
    pub fn admits(&self, state: &ResourceState) -> bool {
        if !state.exists() {
            return false;
        }
        let identity = state.id();
        self.admits_identity(&identity.kind, &identity.name, identity.id, &identity.ancestors)
            && (self.phases.is_empty() || self.phases.contains(&state.phase()))
            && self.labels.iter().all(|(key, value)| state.labels.get(key) == Some(value))
    }
}
