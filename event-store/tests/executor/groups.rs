//! Groups: chaining, atomicity, refusals, names, duplicates.

use crate::support::{config_address, declare, delete, group, id};
use crate::{log, log_with, memory};
use converge_domain::provider_config::ProviderConfigError;
use converge_domain::{AnyState, CommandId, DomainError, Position};
use converge_event_store::{ExecuteError, LogConfig};
use uuid::Uuid;

const NOT_FOUND: DomainError = DomainError::ProviderConfig(ProviderConfigError::NotFound);

#[tokio::test]
async fn a_group_answers_with_its_events_and_the_state_after_it() {
    let (_, store) = memory();
    let log = log(&store).await;
    let a = id();
    let committed = log.execute(group(vec![(a, declare("a", 1)), (a, declare("a", 2))])).await.unwrap();
    assert_eq!(committed.position, Position(2));
    assert_eq!(committed.steps.len(), 2);
    for step in &committed.steps {
        let positions: Vec<u64> = step.events.iter().map(|event| event.position.0).collect();
        assert_eq!(positions, [1, 2]);
        let AnyState::ProviderConfig(state) = &step.state else { panic!("another aggregate") };
        assert_eq!(state.sequence, 2);
    }
    assert_eq!(store.read(Position(0), 10).await.unwrap(), committed.steps[0].events);
}

#[tokio::test]
async fn commands_of_one_aggregate_that_queue_together_chain_in_one_batch() {
    let (_, store) = memory();
    let log = log(&store).await;
    let a = id();
    let answers: Vec<_> = (0..50).map(|n| log.submit(group(vec![(a, declare("a", n))])).unwrap()).collect();
    for (n, answer) in (1..).zip(answers) {
        assert_eq!(answer.await.unwrap().unwrap().position, Position(n));
    }
    let heads = store.heads(&[a]).await.unwrap();
    assert_eq!(heads[0].sequence.0, 50);
}

#[tokio::test]
async fn a_refused_step_undoes_its_whole_group_and_nobody_elses() {
    let (_, store) = memory();
    let log = log(&store).await;
    let (a, b, missing) = (id(), id(), id());
    let before = log.submit(group(vec![(a, declare("a", 1))])).unwrap();
    let refused = log.submit(group(vec![(a, declare("a", 2)), (b, declare("b", 1)), (missing, delete())]));
    let after = log.submit(group(vec![(a, declare("a", 3))])).unwrap();
    assert!(before.await.unwrap().is_ok());
    match refused.unwrap().await.unwrap() {
        Err(ExecuteError::Domain { step: 2, error }) => assert_eq!(error, NOT_FOUND),
        other => panic!("{other:?}"),
    }
    let after = after.await.unwrap().unwrap();
    assert_eq!(after.steps[0].events[0].sequence.0, 2);
    assert_eq!(store.heads(&[b]).await.unwrap(), []);
    assert_eq!(store.log_head().await.unwrap().position, Position(2));
}

#[tokio::test]
async fn a_group_that_changes_nothing_appends_nothing_and_names_the_end_of_the_log() {
    let (_, store) = memory();
    let log = log(&store).await;
    let a = id();
    log.execute(group(vec![(a, declare("a", 1))])).await.unwrap();
    log.execute(group(vec![(id(), declare("b", 1))])).await.unwrap();
    let nothing = log.execute(group(vec![(a, declare("a", 1))])).await.unwrap();
    assert_eq!(nothing.position, Position(2));
    assert_eq!(nothing.steps[0].events, []);
    assert_eq!(store.log_head().await.unwrap().position, Position(2));
}

#[tokio::test]
async fn a_refusal_behind_an_uncommitted_change_waits_for_its_fate() {
    let (_, store) = memory();
    let log = log(&store).await;
    let a = id();
    log.execute(group(vec![(a, declare("a", 1))])).await.unwrap();
    // Both in one batch: the second is refused because of the first, and only if that commits.
    let first = log.submit(group(vec![(a, delete())])).unwrap();
    let second = log.submit(group(vec![(a, delete())])).unwrap();
    assert!(first.await.unwrap().is_ok());
    assert!(
        matches!(second.await.unwrap(), Err(ExecuteError::Domain { step: 0, error }) if error == NOT_FOUND)
    );
}

#[tokio::test]
async fn a_stale_cache_neither_refuses_a_valid_command_nor_swallows_one() {
    let (_, store) = memory();
    // Two processes on one database. Neither hears of the other for the length of this test.
    let config = LogConfig { poll_interval: std::time::Duration::from_secs(600), ..LogConfig::default() };
    let deaf = crate::stream::Deaf::over(store.clone());
    let (ours, theirs) = (log_with(&deaf, config.clone()).await, log_with(&deaf, config).await);
    let a = id();
    ours.execute(group(vec![(a, declare("a", 1))])).await.unwrap();
    ours.execute(group(vec![(a, delete())])).await.unwrap();
    theirs.execute(group(vec![(a, declare("a", 2))])).await.unwrap();
    // Our cache says: deleted.
    ours.execute(group(vec![(a, delete())])).await.unwrap();
    ours.execute(group(vec![(a, declare("a", 3))])).await.unwrap();
    theirs.execute(group(vec![(a, declare("a", 4))])).await.unwrap();
    // Our cache says: that is what it is already.
    let committed = ours.execute(group(vec![(a, declare("a", 3))])).await.unwrap();
    assert_eq!(committed.steps[0].events.len(), 1);
    assert_eq!(store.heads(&[a]).await.unwrap()[0].sequence.0, 7);
}

#[tokio::test]
async fn an_id_that_was_called_new_and_is_not_is_looked_for_after_all() {
    let (_, store) = memory();
    let (ours, theirs) = (log(&store).await, log(&store).await);
    let (a, b) = (id(), id());
    for id in [a, b] {
        theirs.execute(group(vec![(id, declare(&id.to_string(), 1))])).await.unwrap();
    }
    // One that appends from the wrong assumption, and one that is refused because of it.
    let mut declared = group(vec![(a, declare(&a.to_string(), 2))]);
    declared.new.insert(a);
    let committed = ours.execute(declared).await.unwrap();
    assert_eq!(committed.steps[0].events[0].sequence.0, 2);
    let mut deleted = group(vec![(b, delete())]);
    deleted.new.insert(b);
    assert_eq!(ours.execute(deleted).await.unwrap().steps[0].events[0].sequence.0, 2);
}

#[tokio::test]
async fn a_taken_name_is_reported_to_the_taker_alone() {
    let (_, store) = memory();
    let log = log(&store).await;
    log.execute(group(vec![(id(), declare("same", 1))])).await.unwrap();
    let other = log.submit(group(vec![(id(), declare("other", 1))])).unwrap();
    let taker = log.submit(group(vec![(id(), declare("same", 1))])).unwrap();
    assert!(other.await.unwrap().is_ok());
    assert!(matches!(taker.await.unwrap(), Err(ExecuteError::NameTaken)));
}

#[tokio::test]
async fn of_two_takers_at_once_one_gets_the_name_and_the_other_is_told() {
    let (_, store) = memory();
    let log = log_with(&store, LogConfig { lanes: 1, ..LogConfig::default() }).await;
    let answers: Vec<_> =
        (0..10).map(|_| log.submit(group(vec![(id(), declare("same", 1))])).unwrap()).collect();
    let mut taken = 0;
    for answer in answers {
        match answer.await.unwrap() {
            Ok(_) => taken += 1,
            Err(ExecuteError::NameTaken) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(taken, 1);
}

#[tokio::test]
async fn a_command_sent_twice_executes_once_even_within_a_batch() {
    let (_, store) = memory();
    let log = log(&store).await;
    let a = id();
    let send = |n| {
        let mut group = group(vec![(a, declare("a", n))]);
        group.command_id = Some(CommandId(Uuid::from_u128(7)));
        log.submit(group).unwrap()
    };
    let (first, second) = (send(1), send(2));
    assert!(first.await.unwrap().is_ok());
    assert!(matches!(second.await.unwrap(), Err(ExecuteError::Duplicate)));
    // Sharing a unit with somebody else's command does not blame that one.
    let (bystander, again) = (log.submit(group(vec![(a, declare("a", 3))])).unwrap(), send(4));
    assert!(bystander.await.unwrap().is_ok());
    assert!(matches!(again.await.unwrap(), Err(ExecuteError::Duplicate)));
    assert_eq!(store.heads(&[a]).await.unwrap()[0].sequence.0, 2);
}

#[tokio::test]
async fn a_full_queue_pushes_back() {
    let (_, store) = memory();
    let log = log_with(&store, LogConfig { lanes: 1, queue_groups_max: 3, ..LogConfig::default() }).await;
    // Nothing runs between these calls: the test does not wait.
    let results: Vec<_> =
        (0..5).map(|n| log.submit(group(vec![(id(), declare(&n.to_string(), 1))]))).collect();
    let refused = results.iter().filter(|result| matches!(result, Err(ExecuteError::Overloaded))).count();
    assert_eq!(refused, 2);
}

#[tokio::test]
async fn a_shutdown_executes_what_is_queued_and_refuses_the_rest() {
    let (_, store) = memory();
    let log = log(&store).await;
    let queued: Vec<_> =
        (0..20).map(|n| log.submit(group(vec![(id(), declare(&n.to_string(), 1))])).unwrap()).collect();
    log.shutdown().await;
    for answer in queued {
        assert!(answer.await.unwrap().is_ok());
    }
    let late = log.execute(group(vec![(id(), declare("late", 1))])).await;
    assert!(matches!(late, Err(ExecuteError::Closed)));
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_nothing() {
    let (_, store) = memory();
    let log = log(&store).await;
    let a = id();
    let execute = log.execute(group(vec![(a, declare("a", 1))]));
    assert!(futures::poll!(Box::pin(execute)).is_pending());
    log.tail().wait_for(Position(1)).await.unwrap();
    assert_eq!(store.heads(&[a]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_command_for_an_id_of_another_type_is_refused() {
    let (_, store) = memory();
    let log = log(&store).await;
    let mut wrong = group(vec![(id(), declare("a", 1))]);
    wrong.steps[0].0.aggregate_type = converge_domain::AggregateType::Kind;
    assert!(matches!(log.execute(wrong).await, Err(ExecuteError::Store(_))));
    let a = id();
    assert!(log.execute(group(vec![(a, declare("a", 1))])).await.is_ok());
    assert_eq!(config_address(a).id, a);
}
