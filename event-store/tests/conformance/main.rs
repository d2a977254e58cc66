//! One suite for every store: what holds in memory holds in PostgreSQL, and the other way round.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod cases;
#[path = "../support/mod.rs"]
mod support;

macro_rules! conformance {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $case() {
                    crate::cases::$case(std::sync::Arc::new(converge_event_store::MemoryStore::new())).await;
                }
            )*
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    let (_database, store) = crate::support::pg_store().await;
                    crate::cases::$case(store).await;
                }
            )*
        }
    };
}

conformance!(
    positions_are_dense_over_batches_and_lost_units,
    a_moved_head_fails_its_unit_alone,
    a_unit_stands_or_falls_as_a_whole,
    an_unmoved_guard_holds_until_the_head_moves,
    phase_guards_look_at_the_stored_phase_and_pass,
    a_subtree_guard_wants_at_least_that_unsettled,
    child_guards_look_at_the_rows_under_the_parent,
    dependent_and_children_guards_look_at_edges_and_heads,
    a_taken_name_is_a_name_conflict_until_it_is_freed,
    a_unit_may_hand_a_name_from_one_aggregate_to_another,
    two_units_of_a_batch_cannot_both_take_a_name,
    a_command_id_executes_once,
    a_cap_counts_live_claims_and_those_before_it_in_the_batch,
    a_cap_that_comes_late_counts_the_claims_that_live_already,
    a_removed_head_takes_its_narrow_rows_along,
    an_aggregate_that_comes_and_goes_in_one_batch_leaves_its_events_alone,
    narrow_rows_follow_their_aggregate,
    a_batch_of_lost_units_leaves_no_trace,
    a_committed_batch_is_found_and_an_unknown_one_can_never_commit,
    commit_times_never_go_back_and_reads_carry_them,
    streams_and_the_log_are_read_in_pages,
    the_bearers_of_a_kinds_names_are_listed_in_order,
    what_holds_a_teardown_back_is_asked_for_many_at_once,
    beginnings_of_many_streams_are_read_at_once,
    timers_at_the_same_instant_come_together,
    sessions_without_a_beat_that_hold_claims_are_dead,
    a_dead_session_is_named_until_it_is_found_to_hold_nothing,
    staged_items_come_back_in_order_and_replace_themselves,
    the_digest_of_children_counts_those_not_left_out,
    data_that_the_database_refuses_is_a_data_error,
    the_chain_can_be_followed_by_its_ends,
);
