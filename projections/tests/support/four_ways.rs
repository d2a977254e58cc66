//! Given a log, when projected, then rows: whatever the batches, whatever the crashes.

#![allow(dead_code, reason = "each test binary uses its part")]

use super::database::database;
use converge_event_store::StoredEvent;
use converge_projections::catch_up::{CatchUp, Checkpoint, apply_batch};
use sqlx::{Connection, PgConnection, PgPool};

/// Projects `log` four ways, each into a database of its own, and returns the one outcome of all.
///
/// # Panics
/// When two ways disagree.
pub async fn rows(projection: &dyn CatchUp, log: &[StoredEvent], dump: &str) -> Vec<String> {
    let seed = 0x5EED_u64;
    let one_by_one = project(projection, log, dump, &vec![1; log.len()], false).await;
    let one_batch = project(projection, log, dump, &[log.len()], false).await;
    let splits = random_splits(log.len(), seed);
    let random = project(projection, log, dump, &splits, false).await;
    let crashing = project(projection, log, dump, &splits, true).await;
    assert_eq!(one_by_one, one_batch, "one by one and in one batch");
    assert_eq!(one_by_one, random, "one by one and in random batches (seed {seed:#x})");
    assert_eq!(one_by_one, crashing, "without and with crashes (seed {seed:#x})");
    one_by_one
}

async fn project(
    projection: &dyn CatchUp,
    log: &[StoredEvent],
    dump: &str,
    splits: &[usize],
    crash: bool,
) -> Vec<String> {
    let (_database, pool) = database().await;
    let mut connection = connect(&pool).await;
    let mut checkpoint = Checkpoint::take(&mut connection, projection).await.unwrap();
    let mut rest = log;
    for (index, size) in splits.iter().enumerate() {
        let (batch, behind) = rest.split_at(*size);
        if crash && index % 2 == 0 {
            // Half done: rows and checkpoint written, the process gone before the commit.
            let mut tx = connection.begin().await.unwrap();
            let last = batch.last().unwrap().position;
            checkpoint.advance(&mut tx, last).await.unwrap();
            projection.apply(&mut tx, batch).await.unwrap();
            drop(tx);
            connection.close().await.unwrap();
            // The next process resumes from what is stored.
            connection = connect(&pool).await;
            let resumed = Checkpoint::take(&mut connection, projection).await.unwrap();
            assert_eq!(resumed.position(), checkpoint.position(), "a crash moved the checkpoint");
            checkpoint = resumed;
        }
        checkpoint = apply_batch(&mut connection, projection, checkpoint, batch).await.unwrap();
        rest = behind;
    }
    assert!(rest.is_empty());
    sqlx::query_scalar(dump).fetch_all(&pool).await.unwrap()
}

async fn connect(pool: &PgPool) -> PgConnection {
    pool.acquire().await.unwrap().detach()
}

/// A small linear congruential generator: the same splits on every run, printed by its seed.
fn random_splits(total: usize, seed: u64) -> Vec<usize> {
    let (mut state, mut left, mut splits) = (seed, total, Vec::new());
    while left > 0 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = usize::try_from(state >> 33).unwrap() % 9 + 1;
        splits.push(size.min(left));
        left -= size.min(left);
    }
    splits
}
