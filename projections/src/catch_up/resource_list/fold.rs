//! From events and the rows before them to row changes. Pure, so that its laws are tested without a database.

use super::path;
use super::row::Row;
use crate::catch_up::ProjectError;
use converge_domain::resource::{Created, ResourceEvent, ResourceState};
use converge_domain::{AnyEvent, Position, ResourceId};
use converge_event_store::StoredEvent;
use cqrs_es::Aggregate;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What a batch changes.
#[derive(Default, Debug)]
pub struct Changes {
    pub upserts: Vec<Row>,
    pub deletes: Vec<ResourceId>,
    pub identities: Vec<(Created, Position)>,
    /// By (kind, phase): how many more resources are in it than before; zeros left out.
    pub tally: BTreeMap<(String, &'static str), i64>,
}

/// The resources whose stored rows a fold of `events` needs: those with events, and owners of new ones.
pub fn needed(events: &[StoredEvent]) -> BTreeSet<ResourceId> {
    let mut ids = BTreeSet::new();
    for event in events {
        if let AnyEvent::Resource(resource) = &event.event {
            ids.insert(ResourceId(event.aggregate_id.0));
            if let ResourceEvent::Created(created) = resource {
                ids.extend(created.ancestors.first());
            }
        }
    }
    ids
}

/// Folds `events` over `stored` rows. Each id is folded through once, whatever the number of its events.
///
/// # Errors
/// [`ProjectError::Poison`] for an event whose resource the rows do not know.
pub fn fold(stored: Vec<Row>, events: &[StoredEvent]) -> Result<Changes, ProjectError> {
    let mut before: HashMap<ResourceId, (String, &'static str)> = HashMap::new();
    let mut rows: HashMap<ResourceId, Option<Row>> = HashMap::new();
    for row in stored {
        before.insert(row.id(), tally_key(&row.state));
        rows.insert(row.id(), Some(row));
    }
    let mut touched = BTreeSet::new();
    let mut changes = Changes::default();

    for event in events {
        let AnyEvent::Resource(resource) = &event.event else { continue };
        let id = ResourceId(event.aggregate_id.0);
        let poison = |reason: &str| ProjectError::Poison {
            position: event.position,
            reason: format!("{} of resource {id}: {reason}", resource.name()),
        };
        touched.insert(id);
        if let ResourceEvent::Created(created) = resource {
            let path = match created.ancestors.first() {
                None => String::new(),
                Some(owner) => {
                    let owner = rows
                        .get(owner)
                        .and_then(Option::as_ref)
                        .ok_or_else(|| poison("its owner is not in the list"))?;
                    path::below(&owner.path, &created.kind, &created.name, id)
                }
            };
            let state = Arc::new(ResourceState::default());
            rows.insert(id, Some(Row { state, path, updated_position: event.position }));
            changes.identities.push((created.clone(), event.position));
        }
        let slot = rows.get_mut(&id).ok_or_else(|| poison("it is not in the list"))?;
        let row = slot.as_mut().ok_or_else(|| poison("its stream has ended"))?;
        Arc::make_mut(&mut row.state).apply(resource.clone());
        row.updated_position = event.position;
        if row.state.deleted {
            *slot = None;
        }
    }

    for id in touched {
        if let Some(key) = before.get(&id) {
            *changes.tally.entry(key.clone()).or_default() -= 1;
        }
        match rows.remove(&id).flatten() {
            Some(row) => {
                *changes.tally.entry(tally_key(&row.state)).or_default() += 1;
                changes.upserts.push(row);
            }
            // Made and gone within the batch: there never was a row.
            None if before.contains_key(&id) => changes.deletes.push(id),
            None => {}
        }
    }
    changes.tally.retain(|_, difference| *difference != 0);
    Ok(changes)
}

fn tally_key(state: &ResourceState) -> (String, &'static str) {
    (state.id().kind.clone(), state.phase().as_str())
}
