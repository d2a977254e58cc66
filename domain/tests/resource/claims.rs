//! Claims and their fence.

use crate::support::*;
use converge_domain::resource::*;
use converge_domain::{Epoch, SessionId};
use serde_json::json;
use uuid::Uuid;

#[test]
fn a_leaf_becomes_ready_by_one_claim_and_one_outcome() {
    let mut story = declared(leaf());
    assert_eq!(story.phase(), Phase::Reconciling);
    story.works(json!({"id": "x"}));
    assert_eq!(story.phase(), Phase::Ready);
    assert_eq!(Story::names(&story.events), ["Created", "Claimed", "Worked"]);
    assert_eq!(story.state.synced_gen, generation(1));
}

#[test]
fn there_is_at_most_one_live_claim() {
    let mut story = declared(leaf());
    story.claims();
    assert_eq!(story.attempt(claim(99)).unwrap_err(), ResourceError::NotDue);
}

#[test]
fn the_epoch_rises_with_every_claim() {
    let mut story = declared(leaf());
    for n in 1..=3 {
        let claim = story.claims();
        assert_eq!(claim.epoch, Epoch(n));
        let (epoch, claim_id) = (claim.epoch, claim.claim_id);
        story.when(ResourceCommand::ReleaseClaim { epoch, claim_id, reason: "lease".into(), at: NOW });
    }
}

#[test]
fn an_outcome_under_a_dead_fence_is_recorded_and_changes_nothing() {
    let mut story = declared(leaf());
    let claim = story.claims();
    let mut stale = claim.clone();
    stale.claim_id = claim_id(77);
    let before = story.state.clone();
    let events = story.when(outcome(&stale, succeeded(json!({"id": "zombie"}))));
    assert_eq!(Story::names(&events), ["OutcomeFenced"]);
    assert_eq!(story.state.claim, before.claim);
    assert_eq!(story.state.visible_status(), json!({}));
    assert_eq!(story.phase(), before.phase());
}

#[test]
fn the_same_epoch_with_another_claim_id_is_fenced() {
    let mut story = declared(leaf());
    let mut forged = story.claims();
    forged.claim_id = claim_id(1234);
    let events = story.when(outcome(&forged, succeeded(json!({}))));
    assert_eq!(Story::names(&events), ["OutcomeFenced"]);
}

#[test]
fn an_outcome_delivered_twice_counts_once() {
    let mut story = declared(leaf());
    let claim = story.claims();
    story.when(outcome(&claim, succeeded(json!({"id": 1}))));
    let again = story.when(outcome(&claim, succeeded(json!({"id": 1}))));
    assert_eq!(Story::names(&again), ["OutcomeFenced"]);
}

#[test]
fn a_result_for_an_older_generation_is_stored_but_never_syncs_the_newer() {
    let mut story = declared(leaf());
    let claim = story.claims();
    story.when(ResourceCommand::Declare(Box::new(declare(leaf(), json!({"size": 2})))));
    story.when(outcome(&claim, succeeded(json!({"id": "old"}))));
    assert_eq!(story.state.visible_status(), json!({"id": "old"}));
    assert_eq!(story.phase(), Phase::Reconciling);
    assert_eq!(story.state.due(), Some(Reaction::Work), "the next claim follows at once");
    story.works(json!({"id": "new"}));
    assert_eq!(story.phase(), Phase::Ready);
}

#[test]
fn in_progress_spends_no_attempt_and_waits_until_its_time() {
    let mut story = declared(leaf());
    let live = story.claims();
    story.when(outcome(&live, Outcome::InProgress { status: None, requeue_after_secs: 30 }));
    assert_eq!(story.state.attempts, 0);
    assert_eq!(story.attempt(claim(8)).unwrap_err(), ResourceError::NotDue);
    story.when(claim_at(9, NOW.plus_ms(30_000)));
}

#[test]
fn a_resumed_claim_keeps_its_fence_under_another_session() {
    let mut story = declared(leaf());
    let claim = story.claims();
    let session = SessionId(Uuid::from_u128(5));
    let moved = ResourceCommand::MoveClaim { epoch: claim.epoch, claim_id: claim.claim_id, session };
    story.when(moved.clone());
    assert!(story.when(moved).is_empty());
    let events = story.when(outcome(&claim, succeeded(json!({}))));
    assert_eq!(Story::names(&events), ["Worked"]);
}

#[test]
fn a_claim_is_guarded_by_its_upstreams_and_ancestors() {
    let mut story = Story::default();
    let mut child = dependent();
    child.composer = Some(ComposerRef { ancestors: vec![id(50), id(51)], pass_id: pass_id(1) });
    story.when(ResourceCommand::Declare(Box::new(child)));
    story.sees(vec![ready_upstream(4, json!({"id": "123"}))], None);
    let before = story.state.clone();
    let events = story.when(claim(1));
    let guards = consequences(&before, &story.state, &events).guards;
    use converge_domain::guard::Guard;
    assert_eq!(
        guards,
        [
            Guard::UpstreamReady { id: id(2) },
            Guard::AncestorQuiet { id: id(50) },
            Guard::AncestorQuiet { id: id(51) }
        ]
    );
}

#[test]
fn a_rollup_waits_for_the_passes_above_it() {
    use converge_domain::guard::Guard;
    let mut story = Story::default();
    let mut team = declare(composite(), json!({}));
    team.composer = Some(ComposerRef { ancestors: vec![id(50)], pass_id: pass_id(1) });
    story.when(ResourceCommand::Declare(Box::new(team)));
    story.composes(settled("empty"));
    let before = story.state.clone();
    let events = story.when(claim(9));
    assert_eq!(story.state.claim.as_ref().map(|claim| claim.reaction), Some(Reaction::Rollup));
    let guards = consequences(&before, &story.state, &events).guards;
    assert!(guards.contains(&Guard::AncestorQuiet { id: id(50) }), "{guards:?}");
}

#[test]
fn a_newer_generation_does_not_wait_for_what_an_older_one_asked_for() {
    let mut story = declared(leaf());
    let live = story.claims();
    story.when(ResourceCommand::Declare(Box::new(declare(leaf(), json!({"size": 2})))));
    story.when(outcome(&live, Outcome::InProgress { status: None, requeue_after_secs: 1200 }));
    story.when(claim_at(9, NOW));
}
