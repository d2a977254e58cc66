//! Passes, subtree state, rollup and demotion.

use crate::support::*;
use converge_domain::guard::Guard;
use converge_domain::resource::*;
use serde_json::json;

fn ready_root() -> Story {
    let mut story = declared(composite());
    story.composes(settled("x"));
    assert_eq!(story.state.due(), Some(Reaction::Rollup));
    story.works(json!({"teams": 2}));
    assert_eq!(story.phase(), Phase::Ready);
    story
}

#[test]
fn a_composite_is_synced_at_the_join_barrier_only() {
    let mut story = declared(composite());
    let claim = story.claims();
    story.when(outcome(&claim, composition(7)));
    assert_eq!(story.phase(), Phase::Reconciling);
    assert_eq!(story.state.due(), None, "nothing else happens during a pass");
    story.when(complete_pass(2));
    assert!(!story.state.is_synced());
    story.sees(vec![], Some(with_open(id(9))));
    assert!(!story.state.is_synced());
    story.sees(vec![], Some(settled("x")));
    assert!(!story.state.is_synced(), "the rollup is still owed");
    story.works(json!({"teams": 2}));
    assert!(story.state.is_synced());
    assert_eq!(story.phase(), Phase::Ready);
}

#[test]
fn a_composite_without_children_rolls_up_too() {
    let story = ready_root();
    assert_eq!(story.state.visible_status(), json!({"teams": 2}));
}

#[test]
fn a_promotion_is_guarded_by_its_children() {
    let mut story = declared(composite());
    story.composes(with_open(id(9)));
    let before = story.state.clone();
    let events = story.sees(vec![], Some(settled("x")));
    let guards = consequences(&before, &story.state, &events).guards;
    assert_eq!(guards, [Guard::NoUnreadyChild { id: id(1) }]);
}

#[test]
fn a_child_that_opens_demotes_its_owner_in_the_same_transaction() {
    let mut child = Story::default();
    let mut wanted = declare(leaf(), json!({}));
    wanted.composer = Some(ComposerRef { ancestors: vec![id(50)], pass_id: pass_id(1) });
    let created = child.when(ResourceCommand::Declare(Box::new(wanted.clone())));
    let born = consequences(&ResourceState::default(), &child.state, &created);
    assert_eq!(born.raise_owner, Some((id(50), Standing::Open)));
    assert_eq!(born.guards, [Guard::InPass { id: id(50), pass_id: pass_id(1) }]);

    let before = child.state.clone();
    let events = child.works(json!({}));
    assert_eq!(
        consequences(&before, &child.state, &events).raise_owner,
        None,
        "settling never locks the owner"
    );

    let before = child.state.clone();
    wanted.spec = std::sync::Arc::new(json!({"size": 2}));
    let events = child.when(ResourceCommand::Declare(Box::new(wanted)));
    assert_eq!(consequences(&before, &child.state, &events).raise_owner, Some((id(50), Standing::Open)));
}

#[test]
fn a_demoted_root_is_not_ready_and_tells_its_own_owner() {
    let mut root = ready_root();
    root.when(ResourceCommand::RaiseSubtree { standing: Standing::Open, culprit: Some(id(9)), at: NOW });
    assert_eq!(root.phase(), Phase::Reconciling);
    assert_eq!(root.state.standing(), Standing::Open);
    let again = ResourceCommand::RaiseSubtree { standing: Standing::Impaired, culprit: None, at: NOW };
    assert!(root.when(again).is_empty(), "open is worse already");
}

#[test]
fn a_failed_child_degrades_and_does_not_hold_the_rollup_back() {
    let mut root = declared(composite());
    root.composes(with_impaired(id(9), "y"));
    assert_eq!(root.state.due(), Some(Reaction::Rollup));
    root.works(json!({"teams": 1}));
    assert_eq!(root.phase(), Phase::Degraded);
    assert_eq!(root.state.culprit, Some(id(9)));
}

#[test]
fn the_rollup_fires_again_when_the_subtree_settles_again_with_another_outcome() {
    let mut root = ready_root();
    root.when(ResourceCommand::RaiseSubtree { standing: Standing::Open, culprit: None, at: NOW });
    root.sees(vec![], Some(settled("y")));
    assert_eq!(root.state.due(), Some(Reaction::Rollup));
    assert_eq!(root.phase(), Phase::Reconciling);
    root.works(json!({"teams": 3}));
    assert_eq!(root.phase(), Phase::Ready);
}

#[test]
fn a_subtree_that_settles_as_it_was_needs_no_rollup() {
    let mut root = ready_root();
    root.when(ResourceCommand::RaiseSubtree { standing: Standing::Open, culprit: None, at: NOW });
    root.sees(vec![], Some(settled("x")));
    assert_eq!(root.state.due(), None);
    assert_eq!(root.phase(), Phase::Ready);
}

#[test]
fn a_descendants_changed_status_alone_keeps_the_phase_while_the_rollup_is_due() {
    let mut root = ready_root();
    root.sees(vec![], Some(settled("y")));
    assert_eq!(root.state.due(), Some(Reaction::Rollup));
    assert_eq!(root.phase(), Phase::Ready);
    root.claims();
    assert_eq!((root.phase(), root.state.standing()), (Phase::Ready, Standing::AllReady));
}

#[test]
fn a_rollup_whose_subtree_moved_while_it_ran_is_owed_again() {
    let mut root = declared(composite());
    root.composes(settled("x"));
    let claim = root.claims();
    root.sees(vec![], Some(settled("y")));
    root.when(outcome(&claim, succeeded(json!({"teams": 2}))));
    assert_eq!(root.state.due(), Some(Reaction::Rollup));
    assert_ne!(root.phase(), Phase::Ready);
}

#[test]
fn an_edit_that_changes_no_child_rolls_up_again() {
    let mut root = ready_root();
    root.when(ResourceCommand::Declare(Box::new(declare(composite(), json!({"size": 2})))));
    root.composes(settled("x"));
    assert_eq!(root.state.due(), Some(Reaction::Rollup));
}

#[test]
fn a_terminally_failed_rollup_degrades_and_is_tried_at_the_next_settle() {
    let mut root = declared(composite());
    root.composes(settled("x"));
    root.fails("no summary", true);
    assert_eq!(root.phase(), Phase::Degraded);
    assert_ne!(root.state.failed_gen, Some(root.state.generation), "never the generation's own failure");
    root.when(ResourceCommand::RaiseSubtree { standing: Standing::Open, culprit: None, at: NOW });
    root.sees(vec![], Some(settled("y")));
    assert_eq!(root.state.due(), Some(Reaction::Rollup));
}

#[test]
fn an_abandoned_pass_is_composed_again() {
    let mut root = declared(composite());
    let claim = root.claims();
    root.when(outcome(&claim, composition(7)));
    root.when(ResourceCommand::AbandonPass { pass_id: pass_id(7), reason: "staging lost".into(), at: NOW });
    assert_eq!(root.state.due(), Some(Reaction::Compose));
}

#[test]
fn a_pass_that_is_over_accepts_nothing_more() {
    let mut root = declared(composite());
    let complete = complete_pass(0);
    assert_eq!(root.attempt(complete).unwrap_err(), ResourceError::NotInPass);
}

#[test]
fn a_dropped_child_leaves_the_rollup_at_once_and_readoption_brings_it_back() {
    let owner = id(50);
    let composer = |n| Some(ComposerRef { ancestors: vec![owner], pass_id: pass_id(n) });
    let mut child = Story::default();
    child.when(ResourceCommand::Declare(Box::new(Declare {
        composer: composer(1),
        ..declare(leaf(), json!({}))
    })));
    child.works(json!({}));
    let drop = ResourceCommand::Drop {
        composer: owner,
        pass_id: pass_id(2),
        former_dependents: vec![],
        kept_until: Some(converge_domain::Timestamp(9_000)),
        at: NOW,
    };
    child.when(drop);
    assert_eq!((child.phase(), child.state.standing()), (Phase::Orphaned, Standing::LeftOut));
    let again = child.when(ResourceCommand::Declare(Box::new(Declare {
        composer: composer(3),
        ..declare(leaf(), json!({}))
    })));
    assert_eq!(Story::names(&again), ["Readopted"]);
    assert_eq!(child.phase(), Phase::Ready, "nothing was destroyed or done again");
}
