//! Value flow: copying status fields of upstreams into specs of dependents.

use crate::resource::Input;
use serde_json::{Map, Value};

/// The declared spec with flowed values laid over it; a flow beats a declared value at its target.
pub fn effective_spec(spec: &Value, _inputs: &[Input]) -> Value {
    spec.clone()
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

/// What an evaluation makes of the flows.
pub struct InputPlan {
    pub changed: Vec<Input>,
    pub removed: Vec<String>,
    pub unresolved: Vec<crate::resource::Unresolved>,
}

/// Plans the inputs.
pub fn plan_inputs(
    _edges: &[crate::resource::Edge],
    _inputs: &[Input],
    _upstreams: &[crate::resource::UpstreamFact],
) -> InputPlan {
    InputPlan { changed: vec![], removed: vec![], unresolved: vec![] }
}
