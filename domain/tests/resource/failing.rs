//! Transient and terminal failure.

use crate::support::*;
use converge_domain::resource::*;
use serde_json::json;

#[test]
fn a_transient_failure_backs_off_and_is_tried_again() {
    let mut story = declared(leaf());
    story.fails("no route", false);
    assert_eq!(story.phase(), Phase::Reconciling);
    assert_eq!(story.state.attempts, 1);
    let retry_at = story.state.retry_at.expect("a retry is set");
    assert_eq!(story.attempt(claim_at(8, retry_at.plus_ms(-1))).unwrap_err(), ResourceError::NotDue);
    story.when(claim_at(9, retry_at));
}

#[test]
fn the_last_transient_attempt_is_terminal() {
    let mut story = declared(leaf());
    for attempt in 1..=3 {
        let at = story.state.retry_at.unwrap_or(NOW);
        story.when(claim_at(attempt, at));
        let claim = story.state.claim.clone().unwrap();
        story.when(outcome_with(&claim, failed("no route", false), 3));
    }
    assert_eq!(story.phase(), Phase::Failed);
    assert_eq!(story.state.due(), None);
    let message = story.state.last_failure.unwrap().message;
    assert!(message.contains("gave up after 3 attempts"), "{message}");
}

#[test]
fn zero_attempts_means_never_escalate() {
    let mut story = declared(leaf());
    for attempt in 1..=50 {
        let at = story.state.retry_at.unwrap_or(NOW);
        story.when(claim_at(attempt, at));
        let claim = story.state.claim.clone().unwrap();
        story.when(outcome_with(&claim, failed("no route", false), 0));
    }
    assert_eq!(story.phase(), Phase::Reconciling);
}

#[test]
fn a_new_generation_ends_a_terminal_failure_at_once_with_the_counter_reset() {
    let mut story = declared(leaf());
    story.fails("bad size", true);
    assert_eq!(story.phase(), Phase::Failed);
    assert_eq!(story.state.standing(), Standing::Impaired);
    story.when(ResourceCommand::Declare(Box::new(declare(leaf(), json!({"size": 2})))));
    assert_eq!(story.phase(), Phase::Reconciling);
    assert_eq!((story.state.attempts, story.state.retry_at), (0, None));
    assert_eq!(story.state.due(), Some(Reaction::Work));
}

#[test]
fn a_failure_of_an_older_generation_does_not_count_for_the_live_one() {
    let mut story = declared(leaf());
    let claim = story.claims();
    story.when(ResourceCommand::Declare(Box::new(declare(leaf(), json!({"size": 2})))));
    story.when(outcome(&claim, failed("old spec is bad", true)));
    assert_eq!(story.phase(), Phase::Reconciling);
    assert_eq!(story.state.attempts, 0);
    assert_eq!(story.state.due(), Some(Reaction::Work));
}

#[test]
fn a_failing_attempt_may_carry_a_status_which_is_kept() {
    let mut story = declared(leaf());
    let claim = story.claims();
    let half_made = Outcome::Failed {
        message: "timed out".into(),
        terminal: false,
        status: Some(std::sync::Arc::new(json!({"id": "half"}))),
    };
    story.when(outcome(&claim, half_made));
    assert_eq!(story.state.visible_status(), json!({"id": "half"}));
}

#[test]
fn one_failed_pass_then_success_leaves_no_stale_condition() {
    let mut story = declared(leaf());
    story.fails("no route", false);
    let at = story.state.retry_at.unwrap();
    story.when(claim_at(9, at));
    let claim = story.state.claim.clone().unwrap();
    story.when(outcome(&claim, succeeded(json!({}))));
    assert_eq!(story.phase(), Phase::Ready);
    for condition in story.state.conditions() {
        assert_eq!(condition.status, ConditionStatus::True, "{condition:?}");
        assert_eq!(condition.observed_generation, story.state.generation);
        assert_eq!(condition.message, "");
    }
}

#[test]
fn an_unhealthy_success_is_synced_but_degraded() {
    let mut story = declared(leaf());
    let claim = story.claims();
    let unhealthy = Succeeded { healthy: Some(false), ..Succeeded::default() };
    story.when(outcome(&claim, Outcome::Succeeded(unhealthy)));
    assert!(story.state.is_synced());
    assert_eq!(story.phase(), Phase::Degraded);
    assert_eq!(story.state.standing(), Standing::Impaired);
}

#[test]
fn a_long_message_is_cut_at_a_character() {
    let mut story = declared(leaf());
    story.fails(&"é".repeat(10_000), false);
    let message = story.state.last_failure.unwrap().message;
    assert!(message.len() <= 4096 + '…'.len_utf8() && message.ends_with('…'));
}
