//! The level-triggered evaluation: what the resource's surroundings, as just read, mean for it.
//!
//! It decides from facts that may be older than other aggregates' heads by now. Two things make that safe:
//! `expected` voids it when the resource itself moved, and the guards derived from its events void it when
//! an upstream or child it relied on moved. A voided evaluation is done again from fresh reads, and whoever
//! moved the other side wakes this resource once more after commit.

use super::delete;
use crate::ids::{Sequence, Timestamp};
use crate::json;
use crate::resource::{
    ChildrenFact, Edge, Evaluate, Gate, HeldBy, Input, ResourceError, ResourceEvent, ResourceState, Standing,
    SubtreeChanged, Unresolved, UpstreamFact, UpstreamsEvaluated,
};
use crate::value_flow;

pub(super) fn evaluate(state: &ResourceState, facts: &Evaluate) -> Result<Vec<ResourceEvent>, ResourceError> {
    unmoved(state, facts.expected)?;
    if state.deletion.is_some() {
        return Ok(facts.held_by.as_ref().map_or_else(Vec::new, |held| teardown(state, held, facts.at)));
    }
    if state.dropped.is_some() {
        return Ok(vec![]);
    }
    // A hard freeze: nothing flows in, and its children's news wait for its release.
    if state.quarantine.is_some() {
        return Ok(vec![]);
    }
    let mut events = Vec::new();
    let evaluated = upstreams(state, &facts.upstreams, facts.at);
    events.extend(rejected(state, evaluated.as_ref(), facts));
    if let Some(evaluated) = evaluated {
        events.insert(0, ResourceEvent::UpstreamsEvaluated(evaluated));
    }
    if let Some(children) = &facts.children {
        events.extend(subtree(state, children, facts.at));
        events.extend(recompose(state, children));
    }
    Ok(events)
}

fn unmoved(state: &ResourceState, expected: Sequence) -> Result<(), ResourceError> {
    let actual = Sequence(state.sequence);
    if actual == expected { Ok(()) } else { Err(ResourceError::Moved { expected, actual }) }
}

/// The end of a deletion's wait: nothing depends on the node and it owns nothing.
fn teardown(state: &ResourceState, held: &HeldBy, at: Timestamp) -> Vec<ResourceEvent> {
    let open = state.deletion.as_ref().is_some_and(|deletion| deletion.open);
    if held.dependents || held.children || state.claim.is_some() || open {
        return vec![];
    }
    // Never claimed: no provider has seen it, there is nothing to tear down and nobody is asked.
    if state.claimed_version.is_none() || state.finalizers.is_empty() {
        vec![delete::gone(state, at)]
    } else {
        vec![ResourceEvent::TeardownOpened {}]
    }
}

/// The generation fails when its spec, complete with its flowed values, breaks the kind's schema: in one decision
/// with the last value, so that such a spec can never be claimed.
fn rejected(
    state: &ResourceState,
    evaluated: Option<&UpstreamsEvaluated>,
    facts: &Evaluate,
) -> Option<ResourceEvent> {
    let message = facts.rejection.clone()?;
    let (gate, generation, complete) = match evaluated {
        Some(evaluated) => (evaluated.gate, evaluated.generation, evaluated.unresolved.is_empty()),
        None => (state.gate, state.generation, state.unresolved.is_empty()),
    };
    let runs = generation > state.generation
        || ((state.work_is_behind() || state.composition_is_behind()) && !state.has_failed());
    (gate == Gate::Open && complete && runs).then_some(ResourceEvent::InputsRejected {
        generation,
        message,
        at: facts.at,
    })
}

fn upstreams(state: &ResourceState, facts: &[UpstreamFact], at: Timestamp) -> Option<UpstreamsEvaluated> {
    if state.edges.is_empty() && state.inputs.is_empty() && state.unresolved.is_empty() {
        return None;
    }
    let mut plan = value_flow::plan_inputs(&state.edges, &state.inputs, facts);
    // One that has never run has nothing to follow yet: its values come in one event, when all are there.
    if state.worked.is_none() && state.composed.is_none() && facts.iter().any(|fact| !fact.ready) {
        plan.changed.clear();
    }
    plan.unresolved.extend(still_unanswered(state, facts));
    let spec_moves = !plan.removed.is_empty() || plan.changed.iter().any(|new| is_new_value(state, new));
    let generation = if spec_moves { state.generation.next() } else { state.generation };

    // The gate holds new runs only: one that has nothing to run keeps whatever gate it had.
    let behind = state.work_is_behind() || state.composition_is_behind();
    let will_run = spec_moves || !plan.unresolved.is_empty() || (behind && !state.has_failed());
    let (wanted_gate, held_by) = gate(state, facts, !plan.unresolved.is_empty());
    let (gate, held_by) = if will_run { (wanted_gate, held_by) } else { (state.gate, vec![]) };

    let changed =
        spec_moves || !plan.changed.is_empty() || gate != state.gate || plan.unresolved != state.unresolved;
    changed.then_some(UpstreamsEvaluated {
        gate,
        generation,
        inputs: plan.changed,
        removed: plan.removed,
        unresolved: plan.unresolved,
        held_by,
        at,
    })
}

/// Flows that wait for their first value, or for one that went missing, stay so while their upstream is not
/// Ready: only a Ready upstream's status can answer them.
fn still_unanswered(state: &ResourceState, facts: &[UpstreamFact]) -> Vec<Unresolved> {
    let waits = |held: &&Unresolved| {
        state.edges.iter().zip(facts).any(|(edge, fact)| {
            !fact.ready
                && edge.upstream_ref == held.upstream
                && edge
                    .values
                    .iter()
                    .any(|flow| flow.dependent_field == held.field && flow.source_field == held.source_field)
        })
    };
    state.unresolved.iter().filter(waits).cloned().collect()
}

/// Whether the spec differs with `new` in it; a value that merely comes from elsewhere now is no new one.
fn is_new_value(state: &ResourceState, new: &Input) -> bool {
    !state.inputs.iter().any(|held| held.field == new.field && json::equal(&held.value, &new.value))
}

/// The gate that upstreams and flows call for, and the upstreams whose movement would change it.
fn gate(
    state: &ResourceState,
    facts: &[UpstreamFact],
    unresolved: bool,
) -> (Gate, Vec<(crate::ids::ResourceId, u64)>) {
    let not_ready = || state.edges.iter().zip(facts).filter(|(_, fact)| !fact.ready);
    let held_by = not_ready().map(|(_, fact)| (fact.id, fact.sequence.0)).collect();
    // A composed child's upstream is a sibling: where it is missing, its composer is about to make it, unless somebody else
    // holds its name.
    let owned = state.id().owner().is_some();
    let comes = |edge: &Edge, fact: &UpstreamFact| owned && fact.sequence == Sequence(0) && !edge.conflicted;
    // One upstream that still moves may yet change everything: waiting wins over blocked.
    if not_ready().any(|(edge, fact)| fact.standing == Standing::Open || comes(edge, fact)) {
        (Gate::Waiting, held_by)
    } else if not_ready().next().is_some() {
        (Gate::Blocked, held_by)
    } else if unresolved {
        (Gate::Waiting, facts.iter().map(|fact| (fact.id, fact.sequence.0)).collect())
    } else {
        (Gate::Open, vec![])
    }
}

fn subtree(state: &ResourceState, children: &ChildrenFact, at: Timestamp) -> Option<ResourceEvent> {
    // While it is to be composed, or a pass is under way, membership is not decided: nothing settles.
    if !state.shape.composes || state.pass.is_some() || state.composition_is_behind() {
        return None;
    }
    let (subtree, culprit) = match (children.open, children.impaired) {
        (Some(open), _) => (Standing::Open, Some(open)),
        (None, Some(impaired)) => (Standing::Impaired, Some(impaired)),
        // A child that somebody else holds is missing from the subtree.
        (None, None) if !state.conflicts.is_empty() => (Standing::Impaired, None),
        (None, None) => (Standing::AllReady, None),
    };
    let unchanged = if subtree == Standing::Open {
        state.subtree == Standing::Open
    } else {
        state.subtree == subtree && state.subtree_digest == children.digest && state.culprit == culprit
    };
    if unchanged {
        return None;
    }
    let digest = if subtree == Standing::Open { None } else { children.digest.clone() };
    Some(ResourceEvent::SubtreeChanged(SubtreeChanged { subtree, culprit, digest, at }))
}

/// The children's statuses are a reason to compose again, once for each settled set of them that it did not see yet. It ends when
/// a composition leaves the children as they are: then they settle with the digest they had.
fn recompose(state: &ResourceState, children: &ChildrenFact) -> Option<ResourceEvent> {
    let settled = children.open.is_none() && state.pass.is_none() && !state.composition_is_behind();
    let digest =
        children.digest.as_ref().filter(|_| children.recompose && settled && state.shape.composes)?;
    (state.recomposed_digest.as_ref() != Some(digest)).then(|| ResourceEvent::RecomposeRequested {
        reason: "its children changed".to_owned(),
        digest: Some(digest.clone()),
    })
}
