//! What an outcome leaves of what was there, and what is always told.

use crate::support::*;
use converge_domain::resource::*;
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_part_that_an_outcome_leaves_out_keeps_its_slot() {
    let mut story = declared(leaf());
    let condition = Condition {
        condition_type: "Tagged".into(),
        status: ConditionStatus::True,
        reason: String::new(),
        message: String::new(),
        last_transition: NOW,
        observed_generation: generation(1),
    };
    let claim = story.claims();
    let all = Succeeded {
        status: Some(Arc::new(json!({"id": 1}))),
        conditions: Some(vec![condition.clone()]),
        ..Succeeded::default()
    };
    story.when(outcome(&claim, Outcome::Succeeded(all)));
    story.when(ResourceCommand::Declare(Box::new(declare(leaf(), json!({"size": 2})))));
    let claim = story.claims();
    story.when(outcome(&claim, Outcome::Succeeded(Succeeded::default())));
    assert_eq!(story.state.visible_status(), json!({"id": 1}));
    assert_eq!(story.state.conditions_own, [condition]);
    assert_eq!(story.phase(), Phase::Ready);
}

#[test]
fn synced_and_ready_are_always_among_the_conditions_in_kubernetes_shape() {
    let check = |story: &Story, synced: ConditionStatus, ready: ConditionStatus| {
        let conditions = story.state.conditions();
        let told: Vec<_> = conditions.iter().take(2).map(|c| (c.condition_type.as_str(), c.status)).collect();
        assert_eq!(told, [("Synced", synced), ("Ready", ready)]);
        for condition in &conditions {
            assert!(!condition.reason.is_empty(), "{condition:?}");
            assert_eq!(condition.observed_generation, story.state.synced_gen);
        }
    };
    use ConditionStatus::{False, True};
    let mut story = declared(leaf());
    check(&story, False, False);
    story.works(json!({}));
    check(&story, True, True);
    story.when(ResourceCommand::Declare(Box::new(declare(leaf(), json!({"size": 2})))));
    story.fails("no quota", true);
    check(&story, False, False);
    story.when(ResourceCommand::Quarantine { reason: "looking".into(), at: NOW });
    check(&story, False, False);
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    check(&story, False, False);
}

#[test]
fn what_is_set_aside_is_claimed_for_nothing_and_a_cascade_does_not_take_it() {
    let mut story = declared(leaf());
    story.when(ResourceCommand::Quarantine { reason: String::new(), at: NOW });
    assert_eq!(story.state.due(), None);
    assert_eq!((story.phase(), story.state.standing()), (Phase::Quarantined, Standing::LeftOut));
    let refused = story.attempt(ResourceCommand::RequestDeletion { by_name: false, at: NOW }).unwrap_err();
    assert_eq!(refused, ResourceError::Quarantined);
    story.when(ResourceCommand::Release { reason: String::new(), at: NOW });
    assert_eq!(story.state.due(), Some(Reaction::Work));
}

#[test]
fn a_grace_window_ends_when_it_is_over_and_not_before() {
    let mut story = declared(leaf());
    let mut child = story.state.clone();
    let mut identity = child.id().clone();
    identity.ancestors = vec![id(9)];
    child.identity = Some(Arc::new(identity));
    story.state = child;
    story.when(ResourceCommand::Drop {
        composer: id(9),
        pass_id: pass_id(1),
        former_dependents: vec![],
        kept_until: Some(NOW.plus_ms(1_000)),
        at: NOW,
    });
    assert_eq!(story.phase(), Phase::Orphaned);
    assert!(story.when(ResourceCommand::EndGrace { at: NOW.plus_ms(999) }).is_empty());
    assert!(
        story.when(ResourceCommand::RemoveDropped { at: NOW.plus_ms(5_000) }).is_empty(),
        "not without the fact"
    );
    assert_eq!(
        Story::names(&story.when(ResourceCommand::EndGrace { at: NOW.plus_ms(1_000) })),
        ["GraceEnded"]
    );
    let ended = story.when(ResourceCommand::RemoveDropped { at: NOW.plus_ms(1_000) });
    assert_eq!(Story::names(&ended), ["DeletionRequested"]);
}
