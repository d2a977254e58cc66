//! The log goes on into partitions built ahead.

use crate::support::{Builder, database, id};
use crate::{connect, run, store};
use converge_domain::Position;
use converge_event_store::Store;
use sqlx::Row;

#[tokio::test(flavor = "multi_thread")]
async fn the_next_partition_is_there_before_the_last_is_full() {
    let database = database().await;
    let mut admin = connect(&database).await;
    // Pretend that the first partition is all but used up.
    run(
        &mut admin,
        "INSERT INTO converge.append_batch VALUES (9999990, 8, gen_random_uuid(), now(), sha256(''), sha256(''))",
    )
    .await;
    let store = store(&database).await;
    let a = id();
    let batch = (0..6).fold(Builder::default(), |batch, unit| batch.write(unit, id(), 0));
    let appended = store.append(&batch.write(6, a, 0).batch).await.unwrap();
    assert_eq!(appended.first, Position(9_999_998));
    let events = store.read(Position(9_999_997), 100).await.unwrap();
    let positions: Vec<u64> = events.iter().map(|event| event.position.0).collect();
    assert_eq!(positions, (9_999_998..=10_000_004).collect::<Vec<u64>>());
    assert_eq!(store.read_stream(a, converge_domain::Sequence(0), 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_builds_its_partition_and_the_append_is_tried_again() {
    let database = database().await;
    let mut admin = connect(&database).await;
    let store = store(&database).await;
    // Another process used the partition up since this one looked.
    run(
        &mut admin,
        "INSERT INTO converge.append_batch VALUES (9999990, 11, gen_random_uuid(), now(), sha256(''), sha256(''))",
    )
    .await;
    let batch = Builder::default().write(0, id(), 0).batch;
    assert!(matches!(store.append(&batch).await, Err(converge_event_store::StoreError::Retry(_))));
    assert_eq!(store.append(&batch).await.unwrap().first, Position(10_000_001));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_looked_for_only_where_its_head_says() {
    let database = database().await;
    let mut admin = connect(&database).await;
    run(&mut admin, "SELECT converge.ensure_partition(50000000, 10000000)").await;
    let plan = sqlx::query("EXPLAIN SELECT * FROM converge.events WHERE aggregate_id = gen_random_uuid() AND position BETWEEN 5 AND 900")
        .fetch_all(&mut admin)
        .await
        .unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("events_000000000000001") && !plan.contains("events_000000010000001"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_reads_neither_sort_nor_scan_tables() {
    let database = database().await;
    let mut admin = connect(&database).await;
    run(
        &mut admin,
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan",
    )
    .await;
    let reads = [
        ("read_log", include_str!("../../src/postgres/sql/read_log.sql"), "bigint, bigint", "1, 10"),
        (
            "dependents",
            include_str!("../../src/postgres/sql/dependents.sql"),
            "uuid, uuid, bigint",
            "NULL, NULL, 10",
        ),
        (
            "children",
            include_str!("../../src/postgres/sql/children.sql"),
            "uuid, uuid, bigint",
            "NULL, NULL, 10",
        ),
        ("children_summary", include_str!("../../src/postgres/sql/children_summary.sql"), "uuid", "NULL"),
        (
            "unsettled",
            include_str!("../../src/postgres/sql/unsettled.sql"),
            "uuid, uuid, bigint",
            "NULL, NULL, 10",
        ),
        ("next_timer", include_str!("../../src/postgres/sql/next_timer.sql"), "bigint", "1"),
        ("log_head", include_str!("../../src/postgres/sql/log_head.sql"), "", ""),
    ];
    for (name, sql, types, values) in reads {
        let (types, values) = if types.is_empty() {
            (String::new(), String::new())
        } else {
            (format!("({types})"), format!("({values})"))
        };
        run(&mut admin, &format!("PREPARE {name}{types} AS {sql}")).await;
        let rows =
            sqlx::raw_sql(&format!("EXPLAIN EXECUTE {name}{values}")).fetch_all(&mut admin).await.unwrap();
        let plan = rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n");
        assert!(!plan.contains("Seq Scan") && !plan.contains("Sort  ("), "{name}:\n{plan}");
    }
}
