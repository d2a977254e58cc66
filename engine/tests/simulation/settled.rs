//! What a quiet world must look like.

use super::action::ROOTS;
use super::desired::World;
use super::run::Run;
use converge_domain::resource::{Phase, Reaction, ResourceEvent, ResourceState, Standing};
use converge_domain::{AnyEvent, ResourceId};
use converge_event_store::StoredEvent;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

type States = HashMap<ResourceId, Arc<ResourceState>>;

fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Whatever failed stays failed; all else has come as far as that lets it.
pub async fn as_far_as_it_goes(run: &Run) -> Result<(), String> {
    let events = run.events().await;
    let states: States = run.states().await.into_iter().map(|state| (state.id().id, state)).collect();
    for state in states.values() {
        let name = state.id().reference();
        must(state.claim.is_none() && state.pass.is_none(), || {
            format!("{name} still runs in a quiet world")
        })?;
        must(state.due().is_none(), || format!("{name} is due and nobody takes it: {:?}", state.due()))?;
        must(state.deletion.is_none(), || format!("{name} never ends: {}", describe(state)))?;
        let kept = state.dropped.as_ref().is_some_and(|mark| {
            mark.former_dependents.iter().any(|id| states.get(id).is_some_and(|d| !d.is_synced()))
        });
        // The removals of a pass are skipped when its composer was edited meanwhile; where the newer composition is
        // refused nothing is pruned either, and the dropped child is left as it is until one succeeds.
        let owner = state.id().owner().and_then(|owner| states.get(&owner));
        let undecided = state.dropped.is_some() && owner.is_some_and(|owner| owner.composition_is_behind());
        let kept = kept || undecided;
        must(state.dropped.is_none() || kept, || {
            format!("{name} was dropped and stays: {}", describe(state))
        })?;
        // A dropped one that must stay is nobody's to reconcile.
        if kept {
            continue;
        }
        phase_is_right(state, &states, &events)?;
        if state.subtree == Standing::Open && !state.composition_is_behind() {
            let open = children(state, &states).any(|child| child.standing() == Standing::Open);
            must(open, || format!("the subtree of {name} is open without an open child"))?;
        }
        children_are_as_composed(state, &states)?;
    }
    Ok(())
}

fn children<'a>(
    owner: &ResourceState,
    states: &'a States,
) -> impl Iterator<Item = &'a Arc<ResourceState>> + use<'a> {
    let id = owner.id().id;
    states.values().filter(move |state| state.id().owner() == Some(id) && state.dropped.is_none())
}

fn phase_is_right(state: &ResourceState, states: &States, events: &[StoredEvent]) -> Result<(), String> {
    let id = state.id().id;
    let story = || {
        events.iter().filter(move |stored| stored.aggregate_id == id.into()).filter_map(|stored| {
            if let AnyEvent::Resource(event) = &stored.event { Some(event) } else { None }
        })
    };
    let upstreams_ready = state
        .edges
        .iter()
        .all(|edge| states.get(&edge.upstream).is_some_and(|upstream| upstream.phase() == Phase::Ready));
    let right = match state.phase() {
        Phase::Ready => {
            state.synced_gen == state.generation
                && children(state, states).all(|child| child.phase() == Phase::Ready)
        }
        Phase::Failed => story().any(|event| match event {
            ResourceEvent::AttemptFailed(failed) => {
                failed.terminal
                    && failed.generation == state.generation
                    && matches!(failed.reaction, Reaction::Work | Reaction::Compose)
            }
            _ => false,
        }),
        Phase::Degraded => {
            let unhealthy = story()
                .filter_map(|event| match event {
                    ResourceEvent::Worked(worked) => Some(worked.healthy),
                    ResourceEvent::Observed(observed) => Some(observed.healthy),
                    _ => None,
                })
                .next_back()
                .is_some_and(|healthy| !healthy);
            unhealthy
                || children(state, states).any(|child| child.phase() != Phase::Ready)
                || state.last_failure.as_ref().is_some_and(|failure| failure.reaction == Reaction::Rollup)
        }
        // Blocked by an upstream, or waiting for a field of a Ready one, or over somebody who does.
        Phase::Reconciling => {
            !upstreams_ready
                || lacks_a_field(state, states)
                || children(state, states).any(|child| child.standing() == Standing::Open)
        }
        Phase::Deleting | Phase::Quarantined | Phase::Orphaned => false,
    };
    must(right, || format!("{} without a reason: {}", state.phase(), describe(state)))
}

fn lacks_a_field(state: &ResourceState, states: &States) -> bool {
    state.edges.iter().any(|edge| {
        let status = states.get(&edge.upstream).map(|upstream| upstream.visible_status());
        edge.values.iter().any(|flow| {
            status.as_ref().is_none_or(|status| status.pointer(&flow.source_field).is_none_or(Value::is_null))
        })
    })
}

/// The children of a composite that was composed are what its composer returned.
fn children_are_as_composed(state: &ResourceState, states: &States) -> Result<(), String> {
    if !state.shape.composes || state.composition_is_behind() {
        return Ok(());
    }
    let listed = state.spec["children"].as_array().map(Vec::as_slice).unwrap_or_default();
    let composed: BTreeSet<String> =
        listed.iter().filter_map(|child| child["name"].as_str().map(str::to_owned)).collect();
    let there: BTreeSet<String> = children(state, states).map(|child| child.id().name.clone()).collect();
    must(composed == there, || format!("{} owns {there:?}, not {composed:?}", state.id().reference()))
}

/// Nothing is wrong any more: all is Ready, and exactly what users want.
pub async fn as_desired(run: &Run) -> Result<(), String> {
    let mut wanted = World::new();
    for (root, tree) in &run.desired {
        tree.wanted("root", ROOTS[*root], None, &mut wanted);
    }
    let states: States = run.states().await.into_iter().map(|state| (state.id().id, state)).collect();
    let key = |state: &ResourceState| (state.id().kind.clone(), state.id().name.clone());
    let there: BTreeMap<_, _> = states.values().map(|state| (key(state), state)).collect();
    let (named, live): (BTreeSet<_>, BTreeSet<_>) = (wanted.keys().collect(), there.keys().collect());
    must(named == live, || format!("live are {live:?}, wanted {named:?}"))?;
    for (name, wanted) in &wanted {
        let state = there[name];
        must(state.phase() == Phase::Ready, || format!("not Ready: {}", describe(state)))?;
        must(*state.spec == wanted.spec, || format!("the spec of {name:?} is {}", state.spec))?;
        let owner = state.id().owner().map(|owner| key(&states[&owner]));
        must(owner == wanted.owner, || format!("{name:?} is owned by {owner:?}"))?;
        let label = state.labels.get("tier");
        must(label == Some(&wanted.label), || format!("the label of {name:?} is {label:?}"))?;
        let flows: BTreeMap<String, Value> =
            state.inputs.iter().map(|input| (input.field.clone(), (*input.value).clone())).collect();
        must(flows == wanted.flows, || format!("{flows:?} flow into {name:?}, not {:?}", wanted.flows))?;
        for edge in &state.edges {
            let status = states[&edge.upstream].visible_status();
            for flow in &edge.values {
                let source = status.pointer(&flow.source_field);
                let equal = source == flows.get(&flow.dependent_field);
                must(equal, || format!("{name:?} has not what its upstream says: {source:?}"))?;
            }
        }
    }
    Ok(())
}

fn describe(state: &ResourceState) -> String {
    format!(
        "{} is {}, generation {} synced {}, gate {:?}, subtree {:?}, unresolved {:?}, failure {:?}, deletion {:?}, \
         dropped {:?}, owed {} {}, retry {:?}, healthy {}",
        state.id().reference(),
        state.phase(),
        state.generation,
        state.synced_gen,
        state.gate,
        state.subtree,
        state.unresolved,
        state.last_failure,
        state.deletion,
        state.dropped,
        state.rollup_owed,
        state.propagation_owed,
        state.retry_at,
        state.healthy
    )
}
