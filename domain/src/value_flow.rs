//! Value flow: copying status fields of upstreams into specs of dependents.
//!
//! Flowed values are kept beside the declared spec, never in it, so that a flow can neither look like drift nor be
//! erased by a new declaration. The two meet only in [`effective_spec`].

use crate::json::{self, Pointer};
use crate::resource::{Edge, FieldFlow, Input, Unresolved, UpstreamFact};
use crate::violation::Violation;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The declared spec with flowed values laid over it; a flow beats a declared value at its target.
///
/// Absent and null containers on the way to a target become objects. A target inside an array needs its element
/// to exist, and one below a scalar has no place: such a value is left out. [`check_flows`] finds these, and
/// overlapping targets, when the spec is declared.
pub fn effective_spec(spec: &Value, inputs: &[Input]) -> Value {
    let mut effective = spec.clone();
    for input in inputs {
        if let Ok(target) = Pointer::parse(&input.field) {
            // Nothing to do about a value without a place; see above.
            let _ = target.set(&mut effective, Value::clone(&input.value));
        }
    }
    effective
}

/// Top-level merge of status slots; later slots win.
pub fn merge_status<'a>(slots: impl IntoIterator<Item = Option<&'a Value>>) -> Value {
    let mut merged = Map::new();
    for slot in slots.into_iter().flatten() {
        if let Value::Object(fields) = slot {
            merged.extend(fields.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
    }
    Value::Object(merged)
}

/// What the facts around a resource mean for its inputs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InputPlan {
    /// Inputs to store in place of the ones of the same field.
    pub changed: Vec<Input>,
    /// Fields whose input is to be forgotten: nothing flows there any more.
    pub removed: Vec<String>,
    /// Flows of Ready upstreams that give no value now. An input of such a field is kept.
    pub unresolved: Vec<Unresolved>,
}

/// Compares the flows that `edges` declare with the `inputs` stored, against what is known of the upstreams.
///
/// Only Ready upstreams are read; the last value stays otherwise. A fact older than the stored input it would
/// replace is ignored: evaluations may arrive out of order, and a value must never go back in time. Sequences of
/// two different upstreams do not compare, so a flow that changed its source is always taken.
pub fn plan_inputs(edges: &[Edge], inputs: &[Input], upstreams: &[UpstreamFact]) -> InputPlan {
    let facts: HashMap<_, _> = upstreams.iter().map(|fact| (fact.id, fact)).collect();
    let stored: HashMap<&str, &Input> = inputs.iter().map(|input| (input.field.as_str(), input)).collect();
    let mut plan = InputPlan::default();
    let mut flowing = HashSet::new();
    for edge in edges {
        for flow in &edge.values {
            flowing.insert(flow.dependent_field.as_str());
            let Some(fact) = facts.get(&edge.upstream).filter(|fact| fact.ready) else {
                continue;
            };
            let old = stored
                .get(flow.dependent_field.as_str())
                .filter(|input| input.source == edge.upstream && input.source_field == flow.source_field);
            if old.is_some_and(|input| fact.sequence.0 < input.source_sequence) {
                continue;
            }
            match read(flow, &fact.status) {
                Ok(value) if old.is_some_and(|input| json::equal(&input.value, value)) => {}
                Ok(value) => plan.changed.push(Input {
                    field: flow.dependent_field.clone(),
                    source: edge.upstream,
                    source_field: flow.source_field.clone(),
                    source_sequence: fact.sequence.0,
                    value: Arc::new(value.clone()),
                }),
                Err(reason) => plan.unresolved.push(Unresolved {
                    field: flow.dependent_field.clone(),
                    upstream: edge.upstream_ref.clone(),
                    source_field: flow.source_field.clone(),
                    reason,
                }),
            }
        }
    }
    plan.removed =
        inputs.iter().filter(|i| !flowing.contains(i.field.as_str())).map(|i| i.field.clone()).collect();
    plan
}

/// The value a flow copies, or why there is none.
fn read<'a>(flow: &FieldFlow, status: &'a Value) -> Result<&'a Value, String> {
    let source = Pointer::parse(&flow.source_field).map_err(|error| error.to_string())?;
    let target = Pointer::parse(&flow.dependent_field).map_err(|error| error.to_string())?;
    let value = source.get(status).map_err(|missing| missing.reason)?;
    if value.is_null() {
        return Err("it is null".to_owned());
    }
    // The spec with the value in it must stay within what can be stored and sent.
    if target.tokens().len() + json::depth(value) > json::DEPTH_MAX {
        return Err(format!("the spec would be nested deeper than {} levels with it", json::DEPTH_MAX));
    }
    Ok(value)
}

/// Pairs of targets of which one contains the other (or is the same). In order of the targets.
pub fn overlapping_targets<'a>(
    targets: impl IntoIterator<Item = &'a Pointer>,
) -> Vec<(&'a Pointer, &'a Pointer)> {
    let mut sorted: Vec<&Pointer> = targets.into_iter().collect();
    sorted.sort_unstable();
    // In this order everything inside a place follows it directly, so a place can only lie inside the nearest
    // places before it that are still open: those that contain the one before.
    let mut open: Vec<&Pointer> = Vec::new();
    let mut pairs = Vec::new();
    for target in sorted {
        while open.last().is_some_and(|outer| !outer.contains(target)) {
            open.pop();
        }
        if let Some(outer) = open.last() {
            pairs.push((*outer, target));
        }
        open.push(target);
    }
    pairs
}

/// Every reason why `flows` cannot be declared on a resource with this declared `spec`: pointers that are none,
/// overlapping targets, and targets that have no place in the spec. Pointers of the answer are relative to the
/// spec for the latter two.
pub fn check_flows<'a>(spec: &Value, flows: impl IntoIterator<Item = &'a FieldFlow>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut targets = Vec::new();
    for flow in flows {
        if let Err(error) = Pointer::parse(&flow.source_field) {
            violations.push(Violation::new("", format!("source_field `{}`: {error}", flow.source_field)));
        }
        match Pointer::parse(&flow.dependent_field) {
            Ok(target) => targets.push(target),
            Err(error) => violations
                .push(Violation::new("", format!("dependent_field `{}`: {error}", flow.dependent_field))),
        }
    }
    for (outer, inner) in overlapping_targets(&targets) {
        violations.push(Violation::new(inner.to_string(), overlap_message(outer, inner)));
    }
    let mut trial = spec.clone();
    for target in &targets {
        if let Err(missing) = target.set(&mut trial, Value::Null) {
            let message = format!("a value flow has no place here: {missing}");
            violations.push(Violation::new(target.to_string(), message));
        }
    }
    violations
}

/// The sentence for a pair that [`overlapping_targets`] found.
pub fn overlap_message(outer: &Pointer, inner: &Pointer) -> String {
    if outer == inner {
        format!("two value flows write `{inner}`")
    } else {
        format!("a value flow writes `{inner}` inside `{outer}`, which another writes whole")
    }
}

#[cfg(test)]
mod tests;
