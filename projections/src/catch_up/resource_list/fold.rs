//! From events and the rows before them to row changes. Pure, so that its laws are tested without a database.

use super::basis::Basis;
use super::path;
use super::row::Row;
use crate::catch_up::ProjectError;
use converge_domain::resource::{Created, Identity, Phase, ResourceEvent, ResourceState};
use converge_domain::{AnyEvent, Position, ResourceId};
use converge_event_store::StoredEvent;
use cqrs_es::Aggregate;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is stored about the resources of a batch.
#[derive(Default, Debug)]
pub struct Stored {
    pub rows: Vec<Row>,
    /// Of owners whose new children the batch lists.
    pub paths: HashMap<ResourceId, String>,
}

/// What a fold of a batch wants to know.
#[derive(Default, Debug)]
pub struct Needed {
    /// Resources with events that were created before the batch.
    pub rows: BTreeSet<ResourceId>,
    /// Owners of created ones that were created before the batch.
    pub owners: BTreeSet<ResourceId>,
}

/// What a batch changes. Each resource is in one of `births`, `moves`, `ends` and `brief`, or in none.
#[derive(Default, Debug)]
pub struct Changes {
    pub births: Vec<Birth>,
    pub moves: Vec<(ResourceId, Phase, Basis)>,
    /// Listed ones whose labels were set, beside what else happened to them.
    pub labels: Vec<(ResourceId, BTreeMap<String, String>)>,
    pub ends: Vec<ResourceId>,
    /// Made and gone within the batch: they were never listed, but events of them will be asked about.
    pub brief: Vec<(Identity, Position)>,
    /// By kind and phase: how many more resources are in it than before; zeros left out.
    pub tally: BTreeMap<(String, &'static str), i64>,
    /// The same for what each root owns.
    pub tree_tally: BTreeMap<(ResourceId, String, &'static str), i64>,
}

/// A resource that enters the list.
#[derive(Debug)]
pub struct Birth {
    pub identity: Identity,
    pub path: String,
    pub created_position: Position,
    pub labels: BTreeMap<String, String>,
    pub phase: Phase,
    pub basis: Basis,
}

/// A resource while its events are folded.
struct Folding {
    /// The row before the batch; None: created in it.
    before: Option<Row>,
    /// Its path and the position of its creation, if that is in the batch.
    born: Option<(String, Position)>,
    relabelled: bool,
    state: ResourceState,
}

/// What must be known before `events` can be folded.
pub fn needed(events: &[StoredEvent]) -> Needed {
    let mut needed = Needed::default();
    let mut created = BTreeSet::new();
    for event in events {
        let AnyEvent::Resource(resource) = &event.event else { continue };
        let id = ResourceId(event.aggregate_id.0);
        match resource {
            ResourceEvent::Created(new) => {
                created.insert(id);
                needed.owners.extend(new.ancestors.first().filter(|owner| !created.contains(owner)));
            }
            _ if created.contains(&id) => {}
            _ => drop(needed.rows.insert(id)),
        }
    }
    needed
}

/// Folds `events` over what is stored. Each id is folded through once, whatever the number of its events.
///
/// # Errors
/// [`ProjectError::Poison`] for an event whose resource the rows do not know.
pub fn fold(stored: Stored, events: &[StoredEvent]) -> Result<Changes, ProjectError> {
    let owner_paths = stored.paths;
    let mut folding: BTreeMap<ResourceId, Folding> =
        stored.rows.into_iter().map(|row| (row.id, Folding::of(row))).collect();
    for event in events {
        let AnyEvent::Resource(resource) = &event.event else { continue };
        let id = ResourceId(event.aggregate_id.0);
        let poison = |reason: &str| ProjectError::Poison {
            position: event.position,
            reason: format!("{} of resource {id}: {reason}", resource.name()),
        };
        if let ResourceEvent::Created(created) = resource {
            let path = path_of(created, &folding, &owner_paths)
                .ok_or_else(|| poison("its owner is not in the list"))?;
            let born = Some((path, event.position));
            let state = ResourceState::default();
            folding.insert(id, Folding { before: None, born, relabelled: false, state });
        }
        let this = folding.get_mut(&id).ok_or_else(|| poison("it is not in the list"))?;
        if this.state.deleted {
            return Err(poison("its stream has ended"));
        }
        this.relabelled |=
            matches!(resource, ResourceEvent::Configured(configured) if configured.labels.is_some());
        this.state.apply(resource.clone());
    }
    let mut changes = Changes::default();
    for (id, folded) in folding {
        changes.add(id, folded);
    }
    changes.tally.retain(|_, difference| *difference != 0);
    changes.tree_tally.retain(|_, difference| *difference != 0);
    Ok(changes)
}

fn path_of(
    created: &Created,
    folding: &BTreeMap<ResourceId, Folding>,
    owner_paths: &HashMap<ResourceId, String>,
) -> Option<String> {
    let Some(owner) = created.ancestors.first() else { return Some(String::new()) };
    let folded = folding.get(owner);
    if folded.is_some_and(|owner| owner.state.deleted) {
        return None;
    }
    let born = folded.and_then(|owner| owner.born.as_ref()).map(|(path, _)| path);
    let path = born.or_else(|| owner_paths.get(owner))?;
    Some(path::below(path, &created.kind, &created.name, created.id))
}

impl Folding {
    fn of(row: Row) -> Self {
        let identity = Identity {
            id: row.id,
            kind: row.kind.clone(),
            name: row.name.clone(),
            // No phase depends on the ancestors; the row has the root.
            ancestors: Vec::new(),
        };
        let state = row.basis.state(identity);
        Self { before: Some(row), born: None, relabelled: false, state }
    }
}

impl Changes {
    fn add(&mut self, id: ResourceId, folded: Folding) {
        let Folding { before, born, relabelled, state } = folded;
        let (now, basis) = (state.phase(), Basis::of(&state));
        match (before, born) {
            (Some(before), _) if state.deleted => {
                self.count(&before.kind, before.root, before.phase, -1);
                self.ends.push(id);
            }
            (Some(before), _) => {
                if before.phase != now {
                    self.count(&before.kind, before.root, before.phase, -1);
                    self.count(&before.kind, before.root, now, 1);
                }
                if before.phase != now || before.basis != basis {
                    self.moves.push((id, now, basis));
                }
                if relabelled {
                    self.labels.push((id, state.labels));
                }
            }
            (None, Some((_, created_position))) if state.deleted => {
                self.brief.push((state.id().clone(), created_position));
            }
            (None, Some((path, created_position))) => {
                let identity = state.id().clone();
                let root = identity.ancestors.last().copied();
                self.count(&identity.kind, root, now, 1);
                let labels = state.labels;
                self.births.push(Birth { identity, path, created_position, labels, phase: now, basis });
            }
            // What is folded was either stored before or created in the batch.
            (None, None) => {}
        }
    }

    fn count(&mut self, kind: &str, root: Option<ResourceId>, phase: Phase, difference: i64) {
        *self.tally.entry((kind.to_owned(), phase.as_str())).or_default() += difference;
        if let Some(root) = root {
            *self.tree_tally.entry((root, kind.to_owned(), phase.as_str())).or_default() += difference;
        }
    }
}
