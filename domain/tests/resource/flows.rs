//! Gates and value flows.

use crate::support::*;
use converge_domain::guard::Guard;
use converge_domain::resource::*;
use converge_domain::{ResourceRef, Sequence};
use serde_json::{Value, json};

fn waiting() -> Story {
    let mut story = Story::default();
    story.when(ResourceCommand::Declare(Box::new(dependent())));
    story
}

fn ran_with(value: Value) -> Story {
    let mut story = waiting();
    story.sees(vec![ready_upstream(4, json!({ "id": value }))], None);
    story.works(json!({"vpc": "v"}));
    story
}

#[test]
fn a_dependent_waits_until_its_upstream_is_ready() {
    let mut story = waiting();
    assert_eq!(story.state.due(), None);
    assert!(story.sees(vec![upstream(2, false, Standing::Open, json!({}))], None).is_empty());
    assert_eq!(story.state.standing(), Standing::Open);
    story.sees(vec![ready_upstream(4, json!({"id": "123"}))], None);
    assert_eq!(story.state.due(), Some(Reaction::Work));
    assert_eq!(story.state.effective_spec(), json!({"size": 1, "account_id": "123"}));
    assert_eq!(*story.state.spec, json!({"size": 1}), "the declared spec stays apart");
}

#[test]
fn a_failed_upstream_blocks_and_a_blocked_node_is_impaired_not_open() {
    let mut story = waiting();
    let events = story.sees(vec![upstream(3, false, Standing::Impaired, json!({}))], None);
    assert_eq!(story.state.gate, Gate::Blocked);
    assert_eq!(story.state.standing(), Standing::Impaired);
    let guards = consequences(&waiting().state, &story.state, &events).guards;
    assert_eq!(guards, [Guard::Unmoved { id: id(2).into(), sequence: Sequence(3) }]);
}

#[test]
fn an_evaluation_of_a_resource_that_moved_is_void() {
    let mut story = waiting();
    let stale = Evaluate {
        expected: Sequence(0),
        upstreams: vec![ready_upstream(4, json!({"id": "1"}))],
        children: None,
        rejection: None,
        held_by: None,
        at: NOW,
    };
    let error = story.attempt(ResourceCommand::Evaluate(Box::new(stale))).unwrap_err();
    assert!(matches!(error, ResourceError::Moved { .. }));
}

#[test]
fn a_substitution_is_guarded_by_the_sequence_it_was_read_at() {
    let mut story = waiting();
    let before = story.state.clone();
    let events = story.sees(vec![ready_upstream(4, json!({"id": "123"}))], None);
    let guards = consequences(&before, &story.state, &events).guards;
    assert_eq!(guards, [Guard::Unmoved { id: id(2).into(), sequence: Sequence(4) }]);
}

#[test]
fn a_changed_value_raises_the_generation_and_an_equal_one_does_nothing() {
    let mut story = ran_with(json!("123"));
    assert_eq!(story.phase(), Phase::Ready);
    assert!(story.sees(vec![ready_upstream(9, json!({"id": "123"}))], None).is_empty());
    let before = story.state.generation;
    story.sees(vec![ready_upstream(11, json!({"id": "456"}))], None);
    assert_eq!(story.state.generation, before.next());
    assert_eq!(story.state.due(), Some(Reaction::Work));
}

#[test]
fn a_lower_source_sequence_is_a_no_op() {
    let mut story = ran_with(json!("123"));
    story.sees(vec![ready_upstream(11, json!({"id": "456"}))], None);
    assert!(story.sees(vec![ready_upstream(9, json!({"id": "123"}))], None).is_empty());
}

#[test]
fn a_value_that_goes_null_keeps_the_last_one_and_the_phase_with_a_condition() {
    let mut story = ran_with(json!("123"));
    story.sees(vec![ready_upstream(11, json!({"id": null}))], None);
    assert_eq!(story.phase(), Phase::Ready);
    assert_eq!(story.state.effective_spec(), json!({"size": 1, "account_id": "123"}));
    let condition = story
        .state
        .conditions()
        .into_iter()
        .find(|condition| condition.condition_type == "InputsResolved")
        .expect("the hole is shown");
    assert_eq!(condition.status, ConditionStatus::False);
    assert!(condition.message.contains("/id of account/b"), "{}", condition.message);
    story.when(ResourceCommand::Declare(Box::new(Declare {
        spec: std::sync::Arc::new(json!({"size": 2})),
        ..dependent()
    })));
    assert_eq!(story.state.due(), None, "a newer spec waits");
}

#[test]
fn a_never_run_dependent_is_not_run_with_a_hole() {
    let mut story = waiting();
    story.sees(vec![ready_upstream(4, json!({}))], None);
    assert_eq!(story.state.due(), None);
    assert_eq!(story.phase(), Phase::Reconciling);
    assert_eq!(story.state.unresolved[0].upstream, ResourceRef::new("account", "b"));
    story.sees(vec![ready_upstream(6, json!({"id": "late"}))], None);
    assert_eq!(story.state.due(), Some(Reaction::Work));
}

#[test]
fn a_degraded_upstream_neither_runs_nor_demotes_a_synced_dependent() {
    let mut story = ran_with(json!("123"));
    assert!(story.sees(vec![upstream(9, false, Standing::Impaired, json!({}))], None).is_empty());
    assert_eq!(story.phase(), Phase::Ready);
    assert_eq!(story.state.standing(), Standing::AllReady);
}

#[test]
fn a_status_that_changes_after_the_first_sync_is_owed_to_dependents() {
    let mut story = declared(leaf());
    story.works(json!({"id": 1}));
    assert!(!story.state.propagation_owed, "dependents have never run: they are open themselves");
    story.when(ResourceCommand::Declare(Box::new(declare(leaf(), json!({"size": 2})))));
    story.works(json!({"id": 2}));
    assert!(story.state.propagation_owed);
    assert_eq!((story.phase(), story.state.standing()), (Phase::Ready, Standing::Open));
    let outward = story.state.outward;
    assert!(story.when(ResourceCommand::ConfirmPropagated { outward: outward - 1 }).is_empty());
    story.when(ResourceCommand::ConfirmPropagated { outward });
    assert_eq!(story.state.standing(), Standing::AllReady);
}

#[test]
fn a_synced_dependent_repointed_to_another_upstream_is_open_until_its_flow_is_applied() {
    let mut story = ran_with(json!("123"));
    let mut repointed = dependent();
    repointed.edges[0].upstream = id(3);
    repointed.edges[0].upstream_ref = ResourceRef::new("account", "c");
    story.when(ResourceCommand::Declare(Box::new(repointed)));
    assert_eq!(story.state.standing(), Standing::Open);
    let fact = |sequence, ready, standing, status| UpstreamFact {
        id: id(3),
        ..upstream(sequence, ready, standing, status)
    };
    story.sees(vec![fact(1, false, Standing::Open, json!({}))], None);
    assert_eq!((story.phase(), story.state.standing()), (Phase::Ready, Standing::Open));
    story.sees(vec![fact(2, false, Standing::Impaired, json!({}))], None);
    assert_eq!(story.state.standing(), Standing::Impaired, "blocked, not open");
    story.sees(vec![fact(4, true, Standing::AllReady, json!({"id": "456"}))], None);
    assert_eq!(story.state.due(), Some(Reaction::Work));
}

#[test]
fn an_equal_value_from_another_upstream_is_no_new_generation() {
    let mut story = ran_with(json!("123"));
    let generation = story.state.generation;
    let mut repointed = dependent();
    repointed.edges[0].upstream = id(3);
    story.when(ResourceCommand::Declare(Box::new(repointed)));
    story.sees(vec![UpstreamFact { id: id(3), ..ready_upstream(4, json!({"id": "123"})) }], None);
    assert_eq!((story.state.generation, story.state.due()), (generation, None));
    assert_eq!((story.phase(), story.state.standing()), (Phase::Ready, Standing::AllReady));
    assert_eq!(story.state.inputs[0].source, id(3), "but where it comes from is known");
}

#[test]
fn an_invalid_filled_in_spec_fails_the_generation_in_the_same_decision() {
    let mut story = waiting();
    story.rejection = Some("/account_id: too short".into());
    let events = story.sees(vec![ready_upstream(4, json!({"id": "123"}))], None);
    assert_eq!(Story::names(&events), ["UpstreamsEvaluated", "InputsRejected"]);
    assert_eq!((story.phase(), story.state.due()), (Phase::Failed, None));
    story.sees(vec![ready_upstream(6, json!({"id": "123456"}))], None);
    assert_eq!(story.phase(), Phase::Reconciling, "a new value is a new generation");
}

#[test]
fn nothing_is_rejected_before_every_value_is_there() {
    let mut story = waiting();
    story.rejection = Some("/account_id: too short".into());
    assert!(story.sees(vec![upstream(2, false, Standing::Open, json!({}))], None).is_empty());
    assert_eq!(story.phase(), Phase::Reconciling);
}

#[test]
fn a_degraded_node_with_a_changed_status_is_settled_for_its_owner() {
    let mut story = declared(leaf());
    story.works(json!({"id": 1}));
    story.when(ResourceCommand::Declare(Box::new(declare(leaf(), json!({"size": 2})))));
    let claim = story.claims();
    let unhealthy = Succeeded {
        status: Some(std::sync::Arc::new(json!({"id": 2}))),
        healthy: Some(false),
        ..Succeeded::default()
    };
    story.when(outcome(&claim, Outcome::Succeeded(unhealthy)));
    assert!(story.state.propagation_owed);
    assert_eq!((story.phase(), story.state.standing()), (Phase::Degraded, Standing::Impaired));
}

#[test]
fn a_missing_sibling_is_waited_for_and_a_missing_stranger_blocks() {
    let missing = || vec![upstream(0, false, Standing::LeftOut, json!({}))];
    let mut child = Story::default();
    let composer = Some(ComposerRef { ancestors: vec![id(50)], pass_id: pass_id(1) });
    child.when(ResourceCommand::Declare(Box::new(Declare { composer, ..dependent() })));
    assert!(child.sees(missing(), None).is_empty(), "it waits already, and nothing is to be said");
    let mut stranger = waiting();
    stranger.sees(missing(), None);
    assert_eq!(stranger.state.gate, Gate::Blocked);
}
