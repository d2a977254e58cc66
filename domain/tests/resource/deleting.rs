//! Deletion, node by node.

use crate::support::*;
use converge_domain::guard::Guard;
use converge_domain::resource::*;
use serde_json::json;

#[test]
fn a_resource_that_was_never_claimed_gets_no_teardown_task() {
    let mut story = declared(leaf());
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    assert_eq!(story.phase(), Phase::Deleting);
    assert_eq!(story.state.due(), None);
    let events = story.held_by(false, false);
    assert_eq!(Story::names(&events), ["Deleted"]);
}

#[test]
fn teardown_opens_only_when_nothing_depends_on_it_and_it_owns_nothing() {
    let mut story = declared(leaf());
    story.works(json!({"id": 1}));
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    assert!(story.held_by(true, false).is_empty());
    assert!(story.held_by(false, true).is_empty());
    let before = story.state.clone();
    let events = story.held_by(false, false);
    assert_eq!(Story::names(&events), ["TeardownOpened"]);
    assert_eq!(
        consequences(&before, &story.state, &events).guards,
        [Guard::NoDependents { id: id(1) }, Guard::NoChildren { id: id(1) }]
    );
    assert_eq!(story.state.due(), Some(Reaction::Teardown));
}

#[test]
fn a_running_task_is_waited_for() {
    let mut story = declared(leaf());
    let claim = story.claims();
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    assert!(story.held_by(false, false).is_empty());
    story.when(outcome(&claim, succeeded(json!({"id": 1}))));
    assert_eq!(Story::names(&story.held_by(false, false)), ["TeardownOpened"]);
}

#[test]
fn a_finalizer_is_stripped_only_by_a_success_and_the_last_one_ends_the_stream() {
    let mut story = declared(leaf());
    story.works(json!({}));
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    story.held_by(false, false);
    story.fails("still attached", true);
    assert_eq!(story.phase(), Phase::Deleting, "a teardown never gives up");
    assert_eq!(story.state.finalizers, ["acme/leaf"]);
    let at = story.state.retry_at.expect("it is tried again");
    story.when(claim_at(9, at));
    let claim = story.state.claim.clone().unwrap();
    let events = story.when(outcome(&claim, succeeded(json!({}))));
    assert_eq!(Story::names(&events), ["FinalizerStripped", "Deleted"]);
    assert!(!story.state.exists());
}

#[test]
fn several_finalizers_are_stripped_in_reverse_manifest_order() {
    let shape = Shape { works: true, finalizers: vec!["first".into(), "second".into()], ..Shape::default() };
    let mut story = declared(shape);
    story.works(json!({}));
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    story.held_by(false, false);
    assert_eq!(story.claims().finalizer.as_deref(), Some("second"));
    let claim = story.state.claim.clone().unwrap();
    let events = story.when(outcome(&claim, succeeded(json!({}))));
    assert_eq!(Story::names(&events), ["FinalizerStripped"]);
    assert_eq!(story.claims().finalizer.as_deref(), Some("first"));
}

#[test]
fn deleting_twice_changes_nothing() {
    let mut story = declared(leaf());
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    assert!(story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW }).is_empty());
}

#[test]
fn a_protected_resource_refuses_deletion() {
    let mut story = Story::default();
    let mut wanted = declare(leaf(), json!({}));
    wanted.deletion_protection = Some(true);
    story.when(ResourceCommand::Declare(Box::new(wanted)));
    let error = story.attempt(ResourceCommand::RequestDeletion { by_name: true, at: NOW }).unwrap_err();
    assert_eq!(error, ResourceError::Protected);
}

#[test]
fn a_resource_that_is_going_away_refuses_to_be_applied() {
    let mut story = declared(leaf());
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    let wanted = declare(leaf(), json!({"size": 2}));
    let error = story.attempt(ResourceCommand::Declare(Box::new(wanted))).unwrap_err();
    assert_eq!(error, ResourceError::Deleting);
}

#[test]
fn an_ended_stream_never_begins_again() {
    // Its head is removed with its end, so that whoever comes late decides on an empty state.
    let mut ended = Story::default();
    let wanted = declare(leaf(), json!({"size": 2}));
    let error = ended.attempt(ResourceCommand::Redeclare(Box::new(wanted))).unwrap_err();
    assert_eq!(error, ResourceError::NotFound);
}

#[test]
fn a_composition_that_arrives_after_the_delete_makes_no_child() {
    let mut root = declared(composite());
    let claim = root.claims();
    root.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    let events = root.when(outcome(&claim, composition(7)));
    assert_eq!(Story::names(&events), ["ClaimReleased"]);
    assert_eq!(root.state.pass, None);
}

#[test]
fn the_last_event_names_whoever_must_hear_of_it() {
    let mut story = Story::default();
    let mut wanted = dependent();
    wanted.composer = Some(ComposerRef { ancestors: vec![id(50)], pass_id: pass_id(1) });
    story.when(ResourceCommand::Declare(Box::new(wanted)));
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    let events = story.held_by(false, false);
    assert_eq!(
        events,
        [ResourceEvent::Deleted(Deleted {
            owner: Some(id(50)),
            upstreams: vec![id(2)],
            reference: Some(converge_domain::ResourceRef::new("vpc", "a")),
            wanted: true,
            at: NOW
        })]
    );
}

#[test]
fn a_lost_child_makes_its_composer_compose_again_in_the_same_transaction() {
    let mut story = Story::default();
    let mut wanted = declare(leaf(), json!({}));
    wanted.composer = Some(ComposerRef { ancestors: vec![id(50)], pass_id: pass_id(1) });
    story.when(ResourceCommand::Declare(Box::new(wanted)));
    story.when(ResourceCommand::RequestDeletion { by_name: true, at: NOW });
    let before = story.state.clone();
    let events = story.held_by(false, false);
    assert_eq!(consequences(&before, &story.state, &events).recompose_owner, Some(id(50)));

    let mut root = declared(composite());
    let claim = root.claims();
    let lost = || ResourceCommand::RequestRecompose { reason: "a child is gone".into() };
    assert_eq!(
        Story::names(&root.when(lost())),
        ["RecomposeRequested"],
        "the running composition may not see it"
    );
    assert!(root.when(lost()).is_empty(), "the next round will");
    root.when(outcome(&claim, composition(7)));
    root.when(complete_pass(0));
    assert_eq!(root.state.due(), Some(Reaction::Compose));
    assert!(root.sees(vec![], Some(settled("x"))).is_empty(), "nothing settles before it is composed again");
}

#[test]
fn a_dropped_child_that_was_adopted_again_is_not_removed() {
    let composer = |n| Some(ComposerRef { ancestors: vec![id(50)], pass_id: pass_id(n) });
    let mut child = Story::default();
    child.when(ResourceCommand::Declare(Box::new(Declare {
        composer: composer(1),
        ..declare(leaf(), json!({}))
    })));
    let drop = |n, former_dependents| ResourceCommand::Drop {
        composer: id(50),
        pass_id: pass_id(n),
        former_dependents,
        kept_until: None,
        at: NOW,
    };
    child.when(drop(2, vec![]));
    child.when(ResourceCommand::Declare(Box::new(Declare {
        composer: composer(3),
        ..declare(leaf(), json!({}))
    })));
    assert!(child.when(ResourceCommand::RemoveDropped { at: NOW }).is_empty());
    child.when(drop(4, vec![]));
    assert_eq!(Story::names(&child.when(ResourceCommand::RemoveDropped { at: NOW })), ["DeletionRequested"]);
}
