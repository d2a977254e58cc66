//! From a state before and after to the rows that change.

use converge_domain::kind::Manifest;
use converge_domain::resource::{Phase, ResourceState, Standing};
use converge_domain::{Address, AggregateType, AnyState, KindRef, ResourceId, ResourceRef, Timestamp};
use converge_event_store::{
    ChildMark, ChildRow, ClaimRow, HeadRow, InlineProjector, InlineRows, PolicyRow, QueueRow, TimerRow,
};
use std::collections::HashSet;
use uuid::Uuid;

/// The inline projector of the product.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateProjector;

impl InlineProjector for StateProjector {
    fn project(&self, address: Address, before: &AnyState, after: &AnyState) -> (HeadRow, InlineRows) {
        match (before, after) {
            (AnyState::Resource(before), AnyState::Resource(after_resource)) => {
                (resource_head(address, after, after_resource), resource_rows(before, after_resource))
            }
            _ => (named_head(address, after), named_rows(before, after)),
        }
    }
}

fn resource_head(address: Address, state: &AnyState, resource: &ResourceState) -> HeadRow {
    let identity = resource.id();
    HeadRow {
        id: address.id,
        kind: identity.kind.clone(),
        kind_version: version(resource.kind_version),
        name: identity.name.clone(),
        parent: identity.owner(),
        phase: Some(resource.phase()),
        standing: Some(resource.standing()),
        subtree: Some(resource.subtree),
        pass_id: resource.pass.as_ref().map(|pass| pass.pass_id),
        outward: i64::try_from(resource.outward).unwrap_or(i64::MAX),
        state: state.clone(),
    }
}

fn resource_rows(before: &ResourceState, after: &ResourceState) -> InlineRows {
    let identity = after.id();
    let edges_before = upstreams(before);
    let edges_after = upstreams(after);
    InlineRows {
        name_taken: (bears_name(after) && !bears_name(before)).then(|| identity.reference()),
        name_freed: (bears_name(before) && after.deleted).then(|| identity.reference()),
        edges_added: difference(&edges_after, &edges_before),
        edges_removed: difference(&edges_before, &edges_after),
        child: changed(child_row(before), child_row(after)),
        queue: changed(queue_row(before), queue_row(after)),
        timer: changed(timer_row(before), timer_row(after)),
        claim: changed(claim_row(before), claim_row(after)),
        policy: None,
        head_removed: after.deleted,
    }
}

/// A live resource bears its name, unless it waits for another to be gone.
fn bears_name(state: &ResourceState) -> bool {
    state.exists() && state.behind.is_none()
}

/// Some(row) where the row differs, None where it stays.
fn changed<R: PartialEq>(before: Option<R>, after: Option<R>) -> Option<Option<R>> {
    (before != after).then_some(after)
}

/// Upstreams of a live resource, the names it waits for, and the protection of its root if it is protected, each once: such an edge is
/// how whoever takes or frees a name finds those who wait, and a delete those it must not take.
fn upstreams(state: &ResourceState) -> Vec<ResourceId> {
    if !state.exists() {
        return vec![];
    }
    let mut seen = HashSet::new();
    let upstreams = state.edges.iter().map(|edge| edge.upstream);
    let protection = state.deletion_protection.then(|| ResourceState::protection_id(state.id().root()));
    upstreams.chain(state.awaited_names()).chain(protection).filter(|id| seen.insert(*id)).collect()
}

fn difference(these: &[ResourceId], those: &[ResourceId]) -> Vec<ResourceId> {
    these.iter().filter(|id| !those.contains(id)).copied().collect()
}

fn child_row(state: &ResourceState) -> Option<ChildRow> {
    if !state.exists() {
        return None;
    }
    let mark = match state.standing() {
        Standing::Open => ChildMark::Open,
        Standing::Impaired => ChildMark::Impaired,
        // One that is kept is nobody's business until it is wanted again or deleted by name.
        Standing::LeftOut
            if state.quarantine.is_none() && state.dropped.as_ref().is_some_and(|mark| !mark.kept) =>
        {
            ChildMark::Dropped
        }
        Standing::LeftOut | Standing::AllReady => return None,
    };
    Some(ChildRow { parent: state.id().owner().unwrap_or(ResourceId(Uuid::nil())), mark })
}

fn queue_row(state: &ResourceState) -> Option<QueueRow> {
    state.due().map(|_| QueueRow {
        id: state.id().id,
        kind: state.task_kind_ref(),
        priority: state.priority(),
        due_at: state.retry_at.unwrap_or(state.due_since),
    })
}

/// What time alone will change: a retry that falls due, the end of a grace window, or an unfinished pass that some process
/// must finish.
fn timer_row(state: &ResourceState) -> Option<TimerRow> {
    if !state.exists() {
        return None;
    }
    let id = state.id().id;
    if state.pass.is_some() {
        return Some(TimerRow { id, due_at: state.updated_at });
    }
    if let Some(due_at) = state.dropped.as_ref().and_then(|mark| mark.kept_until) {
        return state.deletion.is_none().then_some(TimerRow { id, due_at });
    }
    let due_at: Timestamp = state.retry_at?;
    state.due().map(|_| TimerRow { id, due_at })
}

fn claim_row(state: &ResourceState) -> Option<ClaimRow> {
    state.claim.as_ref().map(|claim| ClaimRow {
        id: state.id().id,
        kind: claimed_kind(state),
        session: claim.session,
    })
}

fn claimed_kind(state: &ResourceState) -> KindRef {
    KindRef::new(&state.id().kind, state.claimed_version.unwrap_or(state.kind_version))
}

/// The head of a kind, config or binding: `(type word, name)` is its name.
fn named_head(address: Address, state: &AnyState) -> HeadRow {
    HeadRow {
        id: address.id,
        kind: type_word(address.aggregate_type).to_owned(),
        kind_version: 0,
        name: singleton_name(state).unwrap_or_default(),
        parent: None,
        phase: None::<Phase>,
        standing: None,
        subtree: None,
        pass_id: None,
        outward: 0,
        state: state.clone(),
    }
}

fn named_rows(before: &AnyState, after: &AnyState) -> InlineRows {
    let word = type_word(after.aggregate_type());
    let name_before = singleton_name(before);
    let name_after = singleton_name(after);
    InlineRows {
        name_taken: match (&name_before, &name_after) {
            (None, Some(name)) => Some(ResourceRef::new(word, name)),
            _ => None,
        },
        name_freed: match (&name_before, &name_after) {
            (Some(name), None) => Some(ResourceRef::new(word, name)),
            _ => None,
        },
        policy: manifest(after).filter(|now| manifest(before) != Some(*now)).map(policy_row),
        // A deleted config keeps its head: its identity is derived from its name, and a later declaration
        // goes on in the same stream.
        head_removed: false,
        ..InlineRows::default()
    }
}

fn type_word(aggregate_type: AggregateType) -> &'static str {
    match aggregate_type {
        AggregateType::Resource => "resource",
        AggregateType::Kind => "kind",
        AggregateType::ProviderConfig => "providerconfig",
        AggregateType::ReactorBinding => "reactorbinding",
    }
}

fn singleton_name(state: &AnyState) -> Option<String> {
    match state {
        AnyState::Resource(_) => None,
        AnyState::Kind(kind) => kind.manifest.as_ref().map(|manifest| manifest.kind_ref().to_string()),
        AnyState::ProviderConfig(config) => config.document.as_ref().map(|document| document.name.clone()),
        AnyState::ReactorBinding(binding) => binding.document.as_ref().map(|document| document.name.clone()),
    }
}

fn manifest(state: &AnyState) -> Option<&Manifest> {
    match state {
        AnyState::Kind(kind) => kind.manifest.as_deref(),
        _ => None,
    }
}

fn policy_row(manifest: &Manifest) -> PolicyRow {
    PolicyRow {
        kind: manifest.kind_ref(),
        max_inflight: i32::try_from(manifest.knobs.max_inflight.unwrap_or(0)).unwrap_or(i32::MAX),
    }
}

fn version(version: u16) -> i16 {
    i16::try_from(version).unwrap_or(i16::MAX)
}
