//! What an update of a head costs: a new version on the same page, and no index entry.

use crate::support::{Builder, database, id, resource};
use crate::{connect, run, store, until};
use converge_domain::resource::{Phase, Standing};
use converge_domain::{KindRef, PassId, Timestamp};
use converge_event_store::{HeadRow, InlineRows, QueueRow, Store};
use sqlx::Connection;

const UPDATES: u64 = 60;

/// Everything on a head that a life changes moves here, so an index on any of these columns, or a predicate over
/// one, makes the updates cold. Each update is a transaction of its own, so what the page cleans up before it must
/// be enough to make room, with no help from vacuum.
#[tokio::test(flavor = "multi_thread")]
async fn updates_of_a_head_touch_no_index() {
    let database = database().await;
    let mut admin = connect(&database).await;
    run(&mut admin, "ALTER TABLE converge.head SET (autovacuum_enabled = off)").await;
    let (store, written) = (store(&database).await, id());
    for sequence in 0..=UPDATES {
        let odd = sequence % 2 == 1;
        let life = |head: &mut HeadRow, rows: &mut InlineRows| {
            head.phase = Some(if odd { Phase::Ready } else { Phase::Reconciling });
            head.kind_version = if odd { 2 } else { 1 };
            head.standing = Some(if odd { Standing::AllReady } else { Standing::Open });
            head.pass_id = (!odd).then_some(PassId(written.0));
            head.outward = i64::try_from(sequence).unwrap();
            rows.queue = Some((!odd).then(|| QueueRow {
                id: resource(written),
                kind: KindRef::new("vpc", 1),
                priority: 0,
                due_at: Timestamp(1),
            }));
        };
        let batch = Builder::default().write_with(0, written, sequence, life).batch;
        assert_eq!(store.append(&batch).await.unwrap().conflicts, []);
    }
    // A session's counts are surely there to be read when it has ended.
    drop(store);
    let updates = i64::try_from(UPDATES).unwrap();
    until(
        &mut admin,
        updates,
        "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = 'converge.head'::regclass",
    )
    .await;
    let hot: i64 = sqlx::query_scalar(
        "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'converge.head'::regclass",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap();
    // An update whose page is full for the moment moves the row once; an indexed column would make all of them cold.
    assert!(hot * 10 >= updates * 9, "{hot} of {updates} updates were HOT");
    admin.close().await.unwrap();
}
