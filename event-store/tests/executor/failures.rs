//! Failures of the store: known, unknown, and poisonous.

use crate::support::{declare, group, id};
use crate::{log, memory};
use converge_domain::{BatchId, Position};
use converge_event_store::memory::Fault;
use converge_event_store::{ExecuteError, StoreError};
use uuid::Uuid;

#[tokio::test]
async fn a_poisonous_command_fails_alone() {
    let (_, store) = memory();
    let log = log(&store).await;
    let answers: Vec<_> = (0..40)
        .map(|n| {
            let name = if n == 17 { "poison\0".to_owned() } else { n.to_string() };
            log.submit(group(vec![(id(), declare(&name, 1))])).unwrap()
        })
        .collect();
    for (n, answer) in answers.into_iter().enumerate() {
        match answer.await.unwrap() {
            Ok(_) => assert_ne!(n, 17),
            Err(ExecuteError::Store(StoreError::Data(_))) => assert_eq!(n, 17),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(log.tail().head(), Position(39));
}

#[tokio::test]
async fn a_poisonous_command_spares_others_on_the_same_aggregate() {
    let (_, store) = memory();
    let log = log(&store).await;
    let a = id();
    let good = log.submit(group(vec![(a, declare("a", 1))])).unwrap();
    let poison = log.submit(group(vec![(a, declare("a\0", 2))])).unwrap();
    assert!(good.await.unwrap().is_ok());
    assert!(matches!(poison.await.unwrap(), Err(ExecuteError::Store(StoreError::Data(_)))));
    let late = log.execute(group(vec![(a, declare("a", 3))])).await.unwrap();
    assert_eq!(late.steps[0].events[0].sequence.0, 2);
}

#[tokio::test]
async fn a_deadlock_or_a_short_outage_is_not_noticed_by_callers() {
    let (memory, store) = memory();
    let log = log(&store).await;
    memory.inject(Fault::Fail(StoreError::Retry("40P01".into())));
    memory.inject(Fault::Fail(StoreError::Unavailable("57P03".into())));
    let committed = log.execute(group(vec![(id(), declare("a", 1))])).await.unwrap();
    assert_eq!(committed.position, Position(1));
}

#[tokio::test]
async fn a_long_outage_is_reported_and_the_log_recovers() {
    let (memory, store) = memory();
    let log = log(&store).await;
    for _ in 0..20 {
        memory.inject(Fault::Fail(StoreError::Unavailable("away".into())));
    }
    // Each call gives up after its patience; in the end the faults are used up.
    let mut reported = 0;
    loop {
        match log.execute(group(vec![(id(), declare("a", 1))])).await {
            Ok(committed) => {
                assert_eq!(committed.position, Position(1));
                break;
            }
            Err(ExecuteError::Store(StoreError::Unavailable(_))) => reported += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(reported > 0);
}

#[tokio::test]
async fn a_lost_answer_is_found_again_and_nothing_is_written_twice() {
    let (memory, store) = memory();
    let log = log(&store).await;
    memory.inject(Fault::LoseAnswer);
    let committed = log.execute(group(vec![(id(), declare("a", 1))])).await.unwrap();
    assert_eq!(committed.position, Position(1));
    assert_eq!(store.log_head().await.unwrap().position, Position(1));
}

#[tokio::test]
async fn a_lost_call_is_repeated() {
    let (memory, store) = memory();
    let log = log(&store).await;
    memory.inject(Fault::LoseCall);
    memory.inject(Fault::LoseCall);
    let committed = log.execute(group(vec![(id(), declare("a", 1))])).await.unwrap();
    assert_eq!(committed.position, Position(1));
}

#[tokio::test]
async fn units_that_a_lost_answer_had_left_out_are_decided_again() {
    let (memory, store) = memory();
    let (ours, theirs) = (log(&store).await, log(&store).await);
    let (a, b) = (id(), id());
    ours.execute(group(vec![(a, declare("a", 1))])).await.unwrap();
    theirs.execute(group(vec![(a, declare("a", 2))])).await.unwrap();
    // Whether or not our cache has heard of it, both commands must be in the log exactly once.
    memory.inject(Fault::LoseAnswer);
    let answers = [
        ours.submit(group(vec![(a, declare("a", 3))])).unwrap(),
        ours.submit(group(vec![(b, declare("b", 1))])).unwrap(),
    ];
    for answer in answers {
        answer.await.unwrap().unwrap();
    }
    let heads = store.heads(&[a, b]).await.unwrap();
    let mut sequences: Vec<u64> = heads.iter().map(|head| head.sequence.0).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, [1, 3]);
}

#[tokio::test]
async fn an_unknown_outcome_names_its_batch() {
    let batch = BatchId(Uuid::nil());
    assert!(StoreError::OutcomeUnknown(batch).to_string().contains(&batch.to_string()));
}
