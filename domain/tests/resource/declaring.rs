//! Applying: created, configured, unchanged.

use crate::support::*;
use converge_domain::resource::*;
use converge_domain::{ResourceId, Revision};
use serde_json::json;

fn redeclare(story: &mut Story, change: impl FnOnce(&mut Declare)) -> Vec<ResourceEvent> {
    let mut declare = declare((*story.state.shape).clone(), (*story.state.spec).clone());
    change(&mut declare);
    story.when(ResourceCommand::Declare(Box::new(declare)))
}

#[test]
fn applying_the_same_again_appends_nothing() {
    let mut story = declared(leaf());
    assert!(redeclare(&mut story, |_| {}).is_empty());
}

#[test]
fn numbers_compare_by_value_and_key_order_is_no_change() {
    let mut story = declared(leaf());
    let events = redeclare(&mut story, |declare| declare.spec = std::sync::Arc::new(json!({"size": 1.0})));
    assert!(events.is_empty());
}

#[test]
fn absent_null_and_empty_are_three_different_specs() {
    let mut story = declared(leaf());
    for (n, spec) in [json!({}), json!({"x": null}), json!({"x": {}}), json!({"x": []}), json!({"x": ""})]
        .into_iter()
        .enumerate()
    {
        redeclare(&mut story, |declare| declare.spec = std::sync::Arc::new(spec.clone()));
        assert_eq!(story.state.generation, generation(n as u64 + 2), "{spec}");
        for _ in 0..10 {
            assert!(
                redeclare(&mut story, |declare| declare.spec = std::sync::Arc::new(spec.clone())).is_empty()
            );
        }
    }
}

#[test]
fn a_spec_change_raises_revision_and_generation() {
    let mut story = declared(leaf());
    redeclare(&mut story, |declare| declare.spec = std::sync::Arc::new(json!({"size": 2})));
    assert_eq!((story.state.revision, story.state.generation), (Revision(2), generation(2)));
}

#[test]
fn a_label_change_raises_the_revision_only_and_gives_a_leaf_no_work() {
    let mut story = declared(leaf());
    story.works(json!({}));
    redeclare(&mut story, |declare| {
        declare.labels.insert("team".into(), "x".into());
    });
    assert_eq!((story.state.revision, story.state.generation), (Revision(2), generation(1)));
    assert_eq!(story.state.due(), None);
    assert_eq!(story.phase(), Phase::Ready);
}

#[test]
fn a_label_change_makes_a_composer_compose_once_more() {
    let mut story = declared(composite());
    story.composes(settled("x"));
    story.works(json!({}));
    redeclare(&mut story, |declare| {
        declare.labels.insert("team".into(), "x".into());
    });
    assert_eq!(story.state.due(), Some(Reaction::Compose));
    assert_eq!(story.phase(), Phase::Ready, "a round other than a heal keeps the phase");
}

#[test]
fn absent_deletion_protection_means_keep() {
    let mut story = declared(leaf());
    redeclare(&mut story, |declare| declare.deletion_protection = Some(true));
    assert!(redeclare(&mut story, |declare| declare.deletion_protection = None).is_empty());
    assert!(story.state.deletion_protection);
}

#[test]
fn equality_is_decided_before_the_expected_revision() {
    let mut story = declared(leaf());
    assert!(redeclare(&mut story, |declare| declare.expected_revision = Some(Revision(9))).is_empty());
}

#[test]
fn a_revision_mismatch_says_both_numbers() {
    let mut story = declared(leaf());
    let mut wanted = declare(leaf(), json!({"size": 2}));
    wanted.expected_revision = Some(Revision(9));
    let error = story.attempt(ResourceCommand::Declare(Box::new(wanted))).unwrap_err();
    assert_eq!(error, ResourceError::RevisionMismatch { expected: Revision(9), actual: Revision(1) });
    assert_eq!(error.to_string(), "expected revision 9, but it is at revision 1");
}

#[test]
fn an_owned_resource_refuses_a_users_change_and_names_the_owner() {
    let owner: ResourceId = id(50);
    let mut story = Story::default();
    let mut child = declare(leaf(), json!({"size": 1}));
    child.composer = Some(ComposerRef { ancestors: vec![owner], pass_id: pass_id(1) });
    story.when(ResourceCommand::Declare(Box::new(child)));
    let same = declare(leaf(), json!({"size": 1}));
    assert!(story.when(ResourceCommand::Declare(Box::new(same))).is_empty(), "equal is unchanged");
    let other = declare(leaf(), json!({"size": 2}));
    let error = story.attempt(ResourceCommand::Declare(Box::new(other))).unwrap_err();
    assert_eq!(error, ResourceError::Owned { owner });
}

#[test]
fn a_kind_without_spec_change_reactions_is_synced_by_being_applied() {
    let story = declared(Shape::default());
    assert_eq!(story.phase(), Phase::Ready);
    assert_eq!(story.state.standing(), Standing::AllReady);
}
