//! The floor: three transactions a batch, each one statement over arrays, on a few connections at once. Nothing reads,
//! decides, locks or notifies. No engine that stores the same facts as durably can be faster than this by much;
//! how far away it is, is its price.

mod rows;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use sqlx::{Connection, Executor, PgConnection, Row};
use tokio::task::JoinSet;

use self::rows::{Rows, metadata};
use super::args::FloorArgs;
use super::machine::Machine;
use super::report::Report;
use super::server::BenchServer;

/// Batches built in advance for each connection.
const BATCHES_IN_A_STRETCH: u32 = 20;

/// What the floor did.
#[derive(Debug, Clone, Serialize)]
pub struct Floor {
    pub n: u32,
    pub batch: u32,
    pub connections: u32,
    pub seconds: f64,
    /// Resources per second through all three transactions: the limit that other rates are compared with.
    pub cycles_per_second: f64,
    pub events_per_second: f64,
    /// Share of head updates that touched no index.
    pub hot_share: f64,
    /// Mean bytes of payload and metadata of an event, as text.
    pub json_bytes_per_event: f64,
    /// Mean bytes of a head row without its indexes.
    pub row_bytes_per_head: f64,
    /// Bytes of the events table with its indexes, per event.
    pub bytes_per_event: f64,
    /// Bytes of the head table with its indexes, per resource.
    pub bytes_per_head: f64,
}

/// It needs some seconds to be a figure, and no more than that.
const BESIDE_N: std::ops::RangeInclusive<u32> = 20_000..=100_000;

/// `converge bench floor`.
pub async fn scenario(args: FloorArgs) -> anyhow::Result<()> {
    let floor = async |server: &BenchServer| measure(server, args.n, args.batch, args.connections).await;
    let (result, postgres) = BenchServer::with(&args.common, floor).await?;
    let lines = result.lines();
    Report { scenario: "floor", machine: Machine::look(), postgres, result }.print(args.common.json, &lines)
}

/// The floor that stands beside a scenario of `n` resources. A debug build's figure is none, and need not take long.
pub async fn beside(server: &BenchServer, n: u32) -> anyhow::Result<Floor> {
    let n = if cfg!(debug_assertions) { 1_000 } else { n.clamp(*BESIDE_N.start(), *BESIDE_N.end()) };
    measure(server, n, 500, 2).await
}

/// Measures it on a server, in a schema of its own that is dropped at the end.
pub async fn measure(server: &BenchServer, n: u32, batch: u32, connections: u32) -> anyhow::Result<Floor> {
    let mut admin = server.connect().await?;
    admin.execute(include_str!("schema.sql")).await?;
    admin.execute("CHECKPOINT").await.context("the floor needs the right to checkpoint")?;

    // Rows are built while the clock stands still, a stretch of batches at a time, so that building them neither counts
    // nor takes a core from the server, and a million resources still fit in memory.
    let mut lanes = Vec::new();
    for _ in 0..connections {
        lanes.push(server.connect().await?);
    }
    let stretch = batch.saturating_mul(connections).saturating_mul(BATCHES_IN_A_STRETCH);
    let mut spent = Duration::ZERO;
    for first in (0..n).step_by(usize::try_from(stretch)?) {
        let end = n.min(first.saturating_add(stretch));
        let mut batches: Vec<Rows> = Vec::new();
        for at in (first..end).step_by(usize::try_from(batch)?) {
            batches.push(Rows::of(at, batch.min(end - at)));
        }
        let batches = Arc::new(Mutex::new(batches));
        let start = Instant::now();
        let mut running = JoinSet::new();
        for connection in lanes.drain(..) {
            running.spawn(lane(connection, Arc::clone(&batches)));
        }
        while let Some(connection) = running.join_next().await {
            lanes.push(connection??);
        }
        spent += start.elapsed();
    }
    for connection in lanes {
        connection.close().await?;
    }

    let stored: i64 = admin.fetch_one("SELECT count(*) FROM bench_floor.events").await?.try_get(0)?;
    anyhow::ensure!(stored == i64::from(n) * 3, "{stored} events are stored and not {}", i64::from(n) * 3);
    let queued: i64 = admin.fetch_one("SELECT count(*) FROM bench_floor.queue").await?.try_get(0)?;
    anyhow::ensure!(queued == 0, "{queued} queue rows are left");
    let sizes = admin.fetch_one(include_str!("sizes.sql")).await?;
    let (events_bytes, head_bytes): (i64, i64) =
        (sizes.try_get("events_bytes")?, sizes.try_get("head_bytes")?);
    let hot_share: f64 = hot_share(&mut admin).await?;
    admin.execute("DROP SCHEMA bench_floor CASCADE").await?;
    admin.close().await?;

    let seconds = spent.as_secs_f64();
    let cycles = f64::from(n);
    #[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52 bytes")]
    Ok(Floor {
        n,
        batch,
        connections,
        seconds,
        cycles_per_second: cycles / seconds,
        events_per_second: cycles * 3.0 / seconds,
        hot_share,
        json_bytes_per_event: sizes.try_get("json_bytes")?,
        row_bytes_per_head: sizes.try_get("head_row_bytes")?,
        bytes_per_event: events_bytes as f64 / (cycles * 3.0),
        bytes_per_head: head_bytes as f64 / cycles,
    })
}

/// Writes batches until none is left, and gives the connection back.
async fn lane(mut connection: PgConnection, batches: Arc<Mutex<Vec<Rows>>>) -> anyhow::Result<PgConnection> {
    let metadata = metadata();
    loop {
        let Some(rows) = batches.lock().map_err(|_| anyhow::anyhow!("another lane panicked"))?.pop() else {
            return Ok(connection);
        };
        // Each statement is a transaction of its own.
        sqlx::query(include_str!("apply.sql"))
            .bind(&rows.ids)
            .bind(&rows.names)
            .bind(&rows.created_states)
            .bind(&rows.created)
            .bind(&metadata)
            .execute(&mut connection)
            .await?;
        sqlx::query(include_str!("claim.sql"))
            .bind(&rows.ids)
            .bind(&rows.claimed)
            .bind(&metadata)
            .execute(&mut connection)
            .await?;
        sqlx::query(include_str!("outcome.sql"))
            .bind(&rows.ids)
            .bind(&rows.ready_states)
            .bind(&rows.worked)
            .bind(&metadata)
            .execute(&mut connection)
            .await?;
    }
}

/// The statistics arrive when the writing sessions have ended; they are closed by now.
async fn hot_share(admin: &mut PgConnection) -> anyhow::Result<f64> {
    let row = admin.fetch_one(include_str!("hot_share.sql")).await?;
    Ok(row.try_get::<Option<f64>, _>(0)?.unwrap_or(0.0))
}

impl Floor {
    /// One line beside another scenario's.
    pub fn line(&self) -> (&'static str, String) {
        ("floor", format!("{:.0} cycles/s (n = {})", self.cycles_per_second, self.n))
    }

    /// For people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            (
                "resources",
                format!("{} in batches of {} on {} connections", self.n, self.batch, self.connections),
            ),
            ("time", format!("{:.2} s", self.seconds)),
            (
                "floor",
                format!("{:.0} cycles/s, {:.0} events/s", self.cycles_per_second, self.events_per_second),
            ),
            ("HOT updates", format!("{:.1} %", self.hot_share * 100.0)),
            (
                "rows",
                format!(
                    "{:.0} B of JSON an event, {:.0} B a head",
                    self.json_bytes_per_event, self.row_bytes_per_head
                ),
            ),
            (
                "on disk",
                format!(
                    "{:.0} B an event, {:.0} B a head, with indexes",
                    self.bytes_per_event, self.bytes_per_head
                ),
            ),
        ]
    }
}
