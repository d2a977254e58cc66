//! Declaring: create, change, or find that nothing differs.

use crate::ids::{ResourceId, Revision};
use crate::json;
use crate::resource::{
    ComposerRef, Configured, Created, Declare, ResourceError, ResourceEvent, ResourceState,
};
use std::collections::BTreeMap;

/// Labels under this prefix belong to the engine: users neither set nor lose them.
const RESERVED_LABELS: &str = "converge.sh/";
/// Labels under this prefix belong to users, also where a composer declares the rest.
const USER_LABELS: &str = "user/";

pub(super) fn declare(state: &ResourceState, wanted: Declare) -> Result<Vec<ResourceEvent>, ResourceError> {
    if state.identity.is_none() {
        return create(wanted);
    }
    if !state.exists() {
        return Err(ResourceError::NotFound);
    }
    if state.deletion.is_some() {
        return Err(ResourceError::Deleting);
    }
    let mut events = Vec::new();
    // A quarantined child is not adopted again either; its composer runs anew when it is released.
    if let (Some(composer), Some(_), None) = (&wanted.composer, &state.dropped, &state.quarantine) {
        owned_by(state, composer)?;
        events.push(ResourceEvent::Readopted { pass_id: composer.pass_id, at: wanted.at });
    }
    let by_user = wanted.composer.is_none();
    if by_user && let Some(owner) = state.id().owner() {
        return by_name_on_owned(state, &wanted, owner);
    }
    let Some(change) = difference(state, &wanted) else {
        return Ok(events);
    };
    if let Some(composer) = &wanted.composer {
        owned_by(state, composer)?;
    }
    // Equality was decided first: re-applying what is there already never conflicts.
    match wanted.expected_revision {
        Some(expected) if expected != state.revision => {
            return Err(ResourceError::RevisionMismatch { expected, actual: state.revision });
        }
        _ => {}
    }
    events.push(ResourceEvent::Configured(change));
    Ok(events)
}

fn create(wanted: Declare) -> Result<Vec<ResourceEvent>, ResourceError> {
    match wanted.expected_revision {
        Some(expected) if expected != Revision(0) => {
            return Err(ResourceError::RevisionMismatch { expected, actual: Revision(0) });
        }
        _ => {}
    }
    let (ancestors, pass_id) = match wanted.composer {
        Some(ComposerRef { ancestors, pass_id }) => (ancestors, Some(pass_id)),
        None => (vec![], None),
    };
    Ok(vec![ResourceEvent::Created(Created {
        id: wanted.id,
        kind: wanted.reference.kind,
        kind_version: wanted.kind_version,
        name: wanted.reference.name,
        ancestors,
        spec: wanted.spec,
        labels: wanted.labels,
        provider_config_ref: wanted.provider_config_ref,
        deletion_protection: wanted.deletion_protection.unwrap_or(false),
        edges: wanted.edges,
        shape: wanted.shape,
        pass_id,
        behind: wanted.behind,
        at: wanted.at,
    })])
}

fn owned_by(state: &ResourceState, composer: &ComposerRef) -> Result<(), ResourceError> {
    let claimant: Option<ResourceId> = composer.ancestors.first().copied();
    match state.id().owner() {
        owner if owner == claimant => Ok(()),
        Some(owner) => Err(ResourceError::Owned { owner }),
        None => Err(ResourceError::UserDeclared),
    }
}

/// What a user may say about a resource that a composer owns: labels of his own, and protection. Everything else he leaves as it
/// is, by giving it as it is or, where a document may, by leaving it out.
fn by_name_on_owned(
    state: &ResourceState,
    wanted: &Declare,
    owner: ResourceId,
) -> Result<Vec<ResourceEvent>, ResourceError> {
    let theirs = |key: &String| !key.starts_with(USER_LABELS);
    let changes_theirs = !json::equal(&state.spec, &wanted.spec)
        || state.kind_version != wanted.kind_version
        || wanted
            .provider_config_ref
            .as_ref()
            .is_some_and(|_| state.provider_config_ref != wanted.provider_config_ref)
        || (!wanted.edges.is_empty() && state.edges != wanted.edges)
        || wanted.labels.iter().any(|(key, value)| theirs(key) && state.labels.get(key) != Some(value));
    if changes_theirs {
        return Err(ResourceError::Owned { owner });
    }
    let mut labels: BTreeMap<String, String> = state.labels.clone();
    labels.retain(|key, _| theirs(key));
    labels.extend(wanted.labels.iter().filter(|(key, _)| !theirs(key)).map(|(k, v)| (k.clone(), v.clone())));
    let labels = (labels != state.labels).then_some(labels);
    let deletion_protection =
        wanted.deletion_protection.filter(|protection| *protection != state.deletion_protection);
    if labels.is_none() && deletion_protection.is_none() {
        return Ok(vec![]);
    }
    if let Some(expected) = wanted.expected_revision.filter(|expected| *expected != state.revision) {
        return Err(ResourceError::RevisionMismatch { expected, actual: state.revision });
    }
    Ok(vec![ResourceEvent::Configured(Configured {
        generation: state.generation,
        kind_version: None,
        shape: None,
        spec: None,
        labels,
        provider_config_ref: None,
        deletion_protection,
        edges: None,
        released: vec![],
        pass_id: None,
        at: wanted.at,
    })])
}

/// What differs, as an event body; None when all is equal.
fn difference(state: &ResourceState, wanted: &Declare) -> Option<Configured> {
    let spec = (!json::equal(&state.spec, &wanted.spec)).then(|| wanted.spec.clone());
    let kind_version = (state.kind_version != wanted.kind_version).then_some(wanted.kind_version);
    let provider_config_ref =
        (state.provider_config_ref != wanted.provider_config_ref).then(|| wanted.provider_config_ref.clone());
    let wanted_labels = with_kept(state, wanted);
    let labels = (state.labels != wanted_labels).then_some(wanted_labels);
    let edges = (state.edges != wanted.edges).then(|| wanted.edges.clone());
    // A composer may protect its child; only a user, who calls it by its name, lifts that again.
    let deletion_protection = wanted
        .deletion_protection
        .filter(|protection| *protection != state.deletion_protection)
        .filter(|protection| *protection || wanted.composer.is_none());

    let raises = spec.is_some() || kind_version.is_some() || provider_config_ref.is_some();
    let differs = raises || labels.is_some() || edges.is_some() || deletion_protection.is_some();
    let released = edges.as_ref().map_or_else(Vec::new, |kept| {
        let lost = |upstream: &ResourceId| !kept.iter().any(|edge| edge.upstream == *upstream);
        state.edges.iter().map(|edge| edge.upstream).filter(lost).collect()
    });
    differs.then(|| Configured {
        generation: if raises { state.generation.next() } else { state.generation },
        kind_version,
        shape: (state.shape != wanted.shape).then(|| wanted.shape.clone()),
        spec,
        labels,
        provider_config_ref,
        deletion_protection,
        edges,
        released,
        pass_id: wanted.composer.as_ref().map(|composer| composer.pass_id),
        at: wanted.at,
    })
}

/// The labels as wanted, with those that are not the declarer's to set or lose.
fn with_kept(state: &ResourceState, wanted: &Declare) -> BTreeMap<String, String> {
    let mut merged = wanted.labels.clone();
    let is_kept = |key: &str| {
        key.starts_with(RESERVED_LABELS) || (wanted.composer.is_some() && key.starts_with(USER_LABELS))
    };
    for (key, value) in state.labels.iter().filter(|(key, _)| is_kept(key)) {
        merged.insert(key.clone(), value.clone());
    }
    merged
}
