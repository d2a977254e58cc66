//! The stored hashes are those that the stored rows give.

use crate::support::{Builder, database, id};
use crate::{connect, store};
use converge_event_store::Store;
use converge_event_store::digest::{CHAIN_START, EventColumns, batch_digest, chain, event_digest};
use sqlx::Row;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn the_chain_can_be_recomputed_from_the_rows() {
    let database = database().await;
    let store = store(&database).await;
    let a = id();
    for sequence in 0..4 {
        // Every batch loses a unit, which must not leave a trace in its digest.
        let batch = Builder::default().write(0, id(), 0).write(1, id(), 9).write(2, a, sequence).batch;
        assert_eq!(store.append(&batch).await.unwrap().count, 2);
    }
    let mut connection = connect(&database).await;
    let batches = sqlx::query("SELECT first_position, count, (extract(epoch FROM committed_at) * 1000000)::bigint AS us, digest, chain FROM converge.append_batch ORDER BY first_position")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(batches.len(), 4);
    let mut previous = CHAIN_START;
    for batch in batches {
        let (first, count): (i64, i32) = (batch.get("first_position"), batch.get("count"));
        let rows = sqlx::query("SELECT aggregate_type, aggregate_id, sequence, event_type, event_version, payload::text AS payload, metadata::text AS metadata FROM converge.events WHERE position >= $1 AND position < $1 + $2 ORDER BY position")
            .bind(first)
            .bind(i64::from(count))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let text = |row: &sqlx::postgres::PgRow, name: &str| row.get::<String, _>(name);
        let digests: Vec<_> = rows
            .iter()
            .map(|row| {
                event_digest(EventColumns {
                    aggregate_type: &text(row, "aggregate_type"),
                    aggregate_id: row.get::<Uuid, _>("aggregate_id"),
                    sequence: row.get::<i64, _>("sequence").unsigned_abs(),
                    event_type: &text(row, "event_type"),
                    event_version: &text(row, "event_version"),
                    payload: &text(row, "payload"),
                    metadata: &text(row, "metadata"),
                })
            })
            .collect();
        let digest = batch_digest(&digests);
        assert_eq!(batch.get::<Vec<u8>, _>("digest"), digest);
        previous = chain(&previous, &digest, first.unsigned_abs(), count.unsigned_abs(), batch.get("us"));
        assert_eq!(batch.get::<Vec<u8>, _>("chain"), previous);
    }
}
