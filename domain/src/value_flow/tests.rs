//! When values flow, and where they land.

use super::*;
use crate::ids::{ResourceId, ResourceRef, Sequence};
use crate::json::arbitrary::{json, key};
use crate::resource::Standing;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

const A: ResourceId = ResourceId(Uuid::from_u128(1));
const B: ResourceId = ResourceId(Uuid::from_u128(2));

fn flow(dependent_field: &str, source_field: &str) -> FieldFlow {
    FieldFlow { dependent_field: dependent_field.to_owned(), source_field: source_field.to_owned() }
}

fn edge(upstream: ResourceId, flows: &[(&str, &str)]) -> Edge {
    let values = flows.iter().map(|(to, from)| flow(to, from)).collect();
    Edge {
        upstream,
        upstream_ref: ResourceRef::new("k", upstream.to_string()),
        values,
        conflicted: false,
        unbound: false,
    }
}

fn fact(id: ResourceId, sequence: u64, ready: bool, status: Value) -> UpstreamFact {
    let standing = if ready { Standing::AllReady } else { Standing::Open };
    UpstreamFact { id, sequence: Sequence(sequence), ready, standing, status: Arc::new(status) }
}

fn input(field: &str, source: ResourceId, source_field: &str, source_sequence: u64, value: Value) -> Input {
    let (field, source_field) = (field.to_owned(), source_field.to_owned());
    Input { field, source, source_field, source_sequence, value: Arc::new(value) }
}

fn reasons(plan: &InputPlan) -> Vec<(&str, &str)> {
    plan.unresolved.iter().map(|u| (u.field.as_str(), u.reason.as_str())).collect()
}

#[test]
fn a_ready_upstream_gives_its_values() {
    let plan =
        plan_inputs(&[edge(A, &[("/account_id", "/id")])], &[], &[fact(A, 4, true, json!({"id": "1"}))]);
    let changed = vec![input("/account_id", A, "/id", 4, json!("1"))];
    assert_eq!(plan, InputPlan { changed, ..InputPlan::default() });
}

#[test]
fn an_equal_value_changes_nothing_however_new() {
    let stored = [input("/n", A, "/n", 4, json!(42))];
    let plan = plan_inputs(&[edge(A, &[("/n", "/n")])], &stored, &[fact(A, 9, true, json!({"n": 42.0}))]);
    assert_eq!(plan, InputPlan::default());
}

#[test]
fn an_upstream_that_is_not_ready_is_not_read() {
    let stored = [input("/n", A, "/n", 4, json!(1))];
    let edges = [edge(A, &[("/n", "/n")]), edge(B, &[("/m", "/m")])];
    let facts = [fact(A, 5, false, json!({"n": 2})), fact(B, 0, false, json!({}))];
    assert_eq!(plan_inputs(&edges, &stored, &facts), InputPlan::default());
}

#[test]
fn a_value_never_goes_back_in_time() {
    let edges = [edge(A, &[("/n", "/n")])];
    let stored = [input("/n", A, "/n", 7, json!("new"))];
    for status in [json!({"n": "old"}), json!({})] {
        assert_eq!(plan_inputs(&edges, &stored, &[fact(A, 6, true, status)]), InputPlan::default());
    }
    let at_the_same_sequence = plan_inputs(&edges, &stored, &[fact(A, 7, true, json!({"n": "other"}))]);
    assert_eq!(at_the_same_sequence.changed.len(), 1);
}

#[test]
fn a_flow_from_another_source_is_taken_whatever_its_sequence() {
    let stored = [input("/n", A, "/n", 7, json!(1)), input("/m", A, "/m", 7, json!(1))];
    let edges = [edge(B, &[("/n", "/n")]), edge(A, &[("/m", "/other")])];
    let facts = [fact(B, 2, true, json!({"n": 1})), fact(A, 3, true, json!({"other": 1}))];
    let plan = plan_inputs(&edges, &stored, &facts);
    assert_eq!(plan.changed, [input("/n", B, "/n", 2, json!(1)), input("/m", A, "/other", 3, json!(1))]);
}

#[test]
fn a_missing_or_null_source_waits_with_its_reason_and_keeps_the_input() {
    let edges = [edge(A, &[("/a", "/a"), ("/b", "/b"), ("/c", "/l/-"), ("/d", "/l/5"), ("/e", "/s/x")])];
    let stored = [input("/a", A, "/a", 1, json!("last"))];
    let plan = plan_inputs(&edges, &stored, &[fact(A, 2, true, json!({"b": null, "l": [1], "s": "text"}))]);
    assert!(plan.changed.is_empty() && plan.removed.is_empty());
    assert_eq!(
        reasons(&plan),
        [
            ("/a", "the whole value has no field `a`"),
            ("/b", "it is null"),
            ("/c", "`/l` is an array, in which `-` names the element after the last, which never exists"),
            ("/d", "`/l` is an array of 1, and index 5 is out of range"),
            ("/e", "`/s` is a string, which has no `x`"),
        ]
    );
    assert_eq!(plan.unresolved[0].upstream, edges[0].upstream_ref);
}

#[test]
fn odd_keys_flow_as_exact_copies() {
    let status = json!({"a/b": {"x": []}, "m~n": 1.5, "~1": "s", "": false, "日本": [null], "0": {"0": 1}, "list": [[7]]});
    let pairs = [
        ("/a~1b", json!({"x": []})),
        ("/m~0n", json!(1.5)),
        ("/~01", json!("s")),
        ("/", json!(false)),
        ("/日本", json!([null])),
        ("/0", json!({"0": 1})),
        ("/list/0", json!([7])),
    ];
    let edges = [edge(A, &pairs.each_ref().map(|(pointer, _)| (*pointer, *pointer)))];
    let plan = plan_inputs(&edges, &[], &[fact(A, 1, true, status)]);
    assert_eq!(plan.unresolved, []);
    let spec = effective_spec(&json!({"list": [0, 1]}), &plan.changed);
    assert_eq!(
        spec,
        json!({"a/b": {"x": []}, "m~n": 1.5, "~1": "s", "": false, "日本": [null], "0": {"0": 1}, "list": [[7], 1]})
    );
}

#[test]
fn an_input_without_a_flow_is_forgotten() {
    let stored = [input("/a", A, "/a", 1, json!(1)), input("/b", A, "/b", 1, json!(1))];
    let plan = plan_inputs(&[edge(A, &[("/b", "/b")])], &stored, &[]);
    assert_eq!(plan.removed, ["/a"]);
}

#[test]
fn a_value_that_would_nest_the_spec_too_deep_waits() {
    let deep = (0..json::DEPTH_MAX).fold(json!(1), |inner, _| json!([inner]));
    let plan = plan_inputs(&[edge(A, &[("/x", "/d")])], &[], &[fact(A, 1, true, json!({"d": deep}))]);
    assert_eq!(reasons(&plan), [("/x", "the spec would be nested deeper than 100 levels with it")]);
}

#[test]
fn a_flow_beats_a_declared_value_and_leaves_the_rest() {
    let inputs = [input("/net/id", A, "/id", 1, json!("n-1")), input("/list/1", A, "/x", 1, json!(2))];
    assert_eq!(
        effective_spec(&json!({"net": {"id": "declared", "zone": "a"}, "list": [0, 0]}), &inputs),
        json!({"net": {"id": "n-1", "zone": "a"}, "list": [0, 2]})
    );
    // No element to write: the value is left out, the rest stays.
    assert_eq!(effective_spec(&json!({"list": [0]}), &inputs), json!({"list": [0], "net": {"id": "n-1"}}));
    assert_eq!(effective_spec(&json!(null), &inputs[..1]), json!({"net": {"id": "n-1"}}));
}

#[test]
fn flows_that_cannot_be_declared_are_all_named() {
    let flows = [
        flow("/a", "/s"),
        flow("/a/b", "/s"),
        flow("/x", "/s"),
        flow("/x", "/t"),
        flow("bad", "/s"),
        flow("/ok", "bad"),
        flow("/list/3", "/s"),
        flow("/text/deep", "/s"),
    ];
    let found: Vec<_> =
        check_flows(&json!({"list": [], "text": "t"}), &flows).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "dependent_field `bad`: a pointer is empty or starts with `/`",
            "source_field `bad`: a pointer is empty or starts with `/`",
            "/a/b: a value flow writes `/a/b` inside `/a`, which another writes whole",
            "/x: two value flows write `/x`",
            "/list/3: a value flow has no place here: `/list` is an array of 0, and index 3 is out of range",
            "/text/deep: a value flow has no place here: `/text` is a string, which cannot hold `deep`",
        ]
    );
}

#[test]
fn later_status_slots_win_per_top_level_field() {
    let merged = merge_status([Some(&json!({"a": 1, "b": {"x": 1}})), None, Some(&json!({"b": {"y": 2}}))]);
    assert_eq!(merged, json!({"a": 1, "b": {"y": 2}}));
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let field = prop::collection::vec(key(), 0..4)
        .prop_map(|tokens| tokens.iter().fold(Pointer::root(), |at, token| at.child(token.as_str())));
    prop::collection::vec((field, json()), 0..5).prop_map(|pairs| {
        pairs.into_iter().map(|(field, value)| input(&field.to_string(), A, "", 1, value)).collect()
    })
}

proptest! {
    #[test]
    fn laying_flows_over_a_spec_twice_is_laying_them_once(spec in json(), inputs in inputs()) {
        let once = effective_spec(&spec, &inputs);
        let targets: Vec<_> = inputs.iter().map(|i| Pointer::parse(&i.field).unwrap()).collect();
        prop_assume!(overlapping_targets(&targets).is_empty());
        prop_assert_eq!(effective_spec(&once, &inputs), once);
    }

    #[test]
    fn overlaps_are_found_exactly_when_there_are_some(inputs in inputs()) {
        let targets: Vec<_> = inputs.iter().map(|i| Pointer::parse(&i.field).unwrap()).collect();
        let some = targets.iter().enumerate().any(|(i, a)| {
            targets[i + 1..].iter().any(|b| json::pointer::overlaps(a, b))
        });
        prop_assert_eq!(!overlapping_targets(&targets).is_empty(), some);
    }
}
