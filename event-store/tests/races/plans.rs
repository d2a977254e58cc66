//! Plans that are made when a table is empty, and meet it full.

use crate::support::{Builder, database, id, resource};
use crate::{connect, run, store};
use converge_domain::{AggregateId, KindRef, ResourceId, ResourceRef, Timestamp};
use converge_event_store::{ChildMark, ChildRow, PgStore, QueueRow, Store};
use std::time::{Duration, Instant};
use uuid::Uuid;

const BURST: usize = 4_000;

/// Resources that come with a name, a queue row and a child row, and then lose the narrow rows again; how long it took.
async fn burst(store: &PgStore) -> Duration {
    let ids: Vec<AggregateId> = (0..BURST).map(|_| id()).collect();
    let kind = KindRef::new("vpc", 1);
    let (mut come, mut go, mut leave) = (Builder::default(), Builder::default(), Builder::default());
    for (unit, id) in (0..).zip(&ids) {
        let (name, a) = (ResourceRef::new("vpc", id.to_string()), resource(*id));
        come = come.write_with(unit, *id, 0, |_, rows| {
            rows.name_taken = Some(name.clone());
            rows.queue =
                Some(Some(QueueRow { id: a, kind: kind.clone(), priority: 0, due_at: Timestamp(5) }));
            rows.child = Some(Some(ChildRow { parent: ResourceId(Uuid::nil()), mark: ChildMark::Open }));
        });
        go = go.write_with(unit, *id, 1, |_, rows| (rows.queue, rows.child) = (Some(None), Some(None)));
        leave = leave.write_with(unit, *id, 2, |_, rows| {
            (rows.name_freed, rows.head_removed) = (Some(name), true);
        });
    }
    let start = Instant::now();
    for batch in [come.batch, go.batch, leave.batch] {
        assert_eq!(store.append(&batch).await.unwrap().conflicts, []);
    }
    start.elapsed()
}

/// What autovacuum says of tables between two bursts: many pages, no rows. Reading such a table as a whole looks
/// cheaper than a few probes, and a plan that does so compares all rows of the next burst with each other.
#[tokio::test(flavor = "multi_thread")]
async fn statistics_of_tables_that_are_empty_now_do_not_slow_the_next_burst() {
    let database = database().await;
    let mut admin = connect(&database).await;
    let first = burst(&*store(&database).await).await;
    for table in ["queue", "child", "names", "head"] {
        run(&mut admin, &format!("VACUUM (TRUNCATE false) converge.{table}")).await;
        let rows: f32 = sqlx::query_scalar(
            "SELECT reltuples FROM pg_class WHERE relnamespace = 'converge'::regnamespace AND relname = $1",
        )
        .bind(table)
        .fetch_one(&mut admin)
        .await
        .unwrap();
        assert!(rows < 1.0, "{table} is not known to be empty");
    }
    // Other connections, so plans are made anew.
    let second = burst(&*store(&database).await).await;
    assert!(second < first * 3 + Duration::from_secs(1), "{second:?} after {first:?}");
}
