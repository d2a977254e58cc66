//! The append call alone: N leaf resources through declare, claim and outcome by [`Store::append`], with the product's
//! projector and real decisions, beside the floor's three statements on the same server in the same run.
//!
//! ```sh
//! cargo run --release -p converge-projections --example append_bench -- postgres://…/scratch [N] [BATCH] [LANES] [ROUNDS]
//! ```
//!
//! The database is a scratch one: its schemas `converge`, `projections` and `bench_floor` are dropped first.
//! `APPEND_BENCH_KEEP` keeps what is there and leaves the floor out; `APPEND_BENCH_SQL` is run before the product's part,
//! for experiments with its tables. Batches are built while the clock stands still; encoding them is in the time, as it is part of the call.
#![expect(clippy::unwrap_used, reason = "a tool for developers stops at the first surprise")]

use converge_domain::resource::{
    ClaimTask, Declare, Outcome, RecordOutcome, ResourceCommand, RetryPolicy, Shape, Succeeded,
};
use converge_domain::{
    Address, AggregateId, AggregateType, AnyCommand, AnyState, BatchId, ClaimId, CommandId, ResourceId,
    ResourceRef, Sequence, SessionId, Timestamp,
};
use converge_event_store::postgres::{PgOptions, PgStore, migrate};
use converge_event_store::{Batch, HeadChange, InlineProjector, Metadata, NewEvent, Store};
use converge_projections::inline::StateProjector;
use sqlx::{Connection, Executor, PgConnection, Row};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use uuid::Uuid;

const FLOOR: [&str; 4] = [
    include_str!("../../cli/src/bench/floor/schema.sql"),
    include_str!("../../cli/src/bench/floor/apply.sql"),
    include_str!("../../cli/src/bench/floor/claim.sql"),
    include_str!("../../cli/src/bench/floor/outcome.sql"),
];
/// Resources whose batches are in memory at once.
const STRETCH: usize = 20_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let url = args.next().expect("a database URL");
    let mut number = |default: usize| args.next().map_or(default, |word| word.parse().unwrap());
    let (n, batch, lanes, rounds) = (number(40_000), number(500), number(2), number(1));
    for _ in 0..rounds {
        if !keep() {
            floor(&url, n, batch, lanes).await;
        }
        product(&url, n, batch, lanes).await;
    }
}

/// Whether to append to what an earlier run (or a filling by hand) left, without the floor.
fn keep() -> bool {
    std::env::var_os("APPEND_BENCH_KEEP").is_some()
}

async fn reset(url: &str) -> PgConnection {
    let mut admin = PgConnection::connect(url).await.unwrap();
    if keep() {
        return admin;
    }
    for schema in ["converge", "projections", "bench_floor"] {
        admin.execute(format!("DROP SCHEMA IF EXISTS {schema} CASCADE").as_str()).await.unwrap();
    }
    admin.execute("DROP TABLE IF EXISTS public._sqlx_migrations").await.unwrap();
    admin
}

/// User and system time of the backends with these ids, from the process table; zero where there is none.
fn cpu(pids: &[i32]) -> Duration {
    let ticks = pids.iter().filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    });
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

async fn wal(admin: &mut PgConnection) -> i64 {
    let row = admin.fetch_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await.unwrap();
    row.get(0)
}

fn say(what: &str, n: usize, spent: Duration, cpu: Duration, wal: i64) {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / n as f64;
    println!(
        "{what:8} {:6.0} cycles/s  {:5.1} us wall  {:5.1} us of backend CPU  {:5.0} B of WAL a cycle",
        n as f64 / spent.as_secs_f64(),
        each(spent),
        each(cpu),
        wal as f64 / n as f64
    );
}

/// A leaf with its state so far.
struct Leaf {
    id: AggregateId,
    sequence: u64,
    state: AnyState,
}

fn new_batch() -> Batch {
    let batch_id = BatchId(Uuid::now_v7());
    Batch { batch_id, events: vec![], heads: vec![], guards: vec![], commands: vec![] }
}

/// One command to each leaf, as the log would put them into a batch.
async fn step(leaves: &mut [Leaf], session: SessionId, step: usize, first: usize) -> Batch {
    let mut batch = new_batch();
    let at = Timestamp(1_700_000_000_000);
    let shared = Uuid::now_v7().to_string();
    let keys = ["actor", "command_id", "correlation_id"];
    let metadata: Arc<Metadata> = Arc::new(keys.map(|key| (key.to_owned(), shared.clone())).into());
    for (unit, leaf) in leaves.iter_mut().enumerate() {
        let before = leaf.state.clone();
        let command = match step {
            0 => declare(leaf.id, first + unit, at),
            1 => ResourceCommand::Claim(Box::new(ClaimTask {
                claim_id: ClaimId(Uuid::new_v4()),
                session,
                worker: "127.0.0.1:54321".to_owned(),
                deadline_secs: 60,
                at,
            })),
            _ => outcome(&leaf.state, at),
        };
        let events = leaf.state.decide(AnyCommand::Resource(command)).await.unwrap();
        let expected = Sequence(leaf.sequence);
        let unit = u32::try_from(unit).unwrap();
        for event in events {
            leaf.sequence += 1;
            batch.events.push(NewEvent {
                unit,
                aggregate_type: AggregateType::Resource,
                aggregate_id: leaf.id,
                sequence: Sequence(leaf.sequence),
                event,
                metadata: metadata.clone(),
            });
        }
        let address = Address { aggregate_type: AggregateType::Resource, id: leaf.id };
        let (head, rows) = StateProjector.project(address, &before, &leaf.state);
        batch.heads.push(HeadChange {
            unit,
            aggregate_type: AggregateType::Resource,
            expected,
            sequence: Sequence(leaf.sequence),
            head,
            rows,
        });
    }
    if step == 0 {
        batch.commands.push((0, CommandId(Uuid::new_v4())));
    }
    batch
}

fn declare(id: AggregateId, number: usize, at: Timestamp) -> ResourceCommand {
    ResourceCommand::Declare(Box::new(Declare {
        id: ResourceId(id.0),
        // Names of an earlier run may be taken.
        reference: ResourceRef::new(
            "bench-leaf",
            format!("leaf-{number:04}-{:04x}", id.0.as_u128() & 0xffff_ffff),
        ),
        kind_version: 1,
        spec: Arc::new(serde_json::json!({"cidr": "10.0.0.0/16", "size": number, "region": "eu-central-1"})),
        labels: BTreeMap::from([
            ("team".to_owned(), "payments".to_owned()),
            ("env".to_owned(), "prod".to_owned()),
        ]),
        provider_config_ref: None,
        deletion_protection: None,
        edges: vec![],
        shape: Arc::new(Shape { works: true, ..Shape::default() }),
        behind: None,
        composer: None,
        expected_revision: None,
        at,
    }))
}

fn outcome(state: &AnyState, at: Timestamp) -> ResourceCommand {
    let claim = state.as_resource().unwrap().claim.clone().unwrap();
    let status = serde_json::json!({"vpc_id": format!("vpc-{}", claim.claim_id.0.simple()), "observed": 7});
    ResourceCommand::RecordOutcome(Box::new(RecordOutcome {
        epoch: claim.epoch,
        claim_id: claim.claim_id,
        outcome: Outcome::Succeeded(Succeeded { status: Some(Arc::new(status)), ..Succeeded::default() }),
        retry: RetryPolicy { max_transient_attempts: 0, jitter: 0.5 },
        at,
    }))
}

async fn product(url: &str, n: usize, batch: usize, lanes: usize) {
    let mut admin = reset(url).await;
    let options = PgOptions { readers_max: 2, ..PgOptions::default() };
    let pool = sqlx::PgPool::connect(url).await.unwrap();
    migrate(&pool).await.unwrap();
    pool.close().await;
    // What an experiment changes about the tables.
    if let Ok(sql) = std::env::var("APPEND_BENCH_SQL") {
        admin.execute(sql.as_str()).await.unwrap();
    }
    let store = Arc::new(PgStore::connect(url, options).await.unwrap());
    admin.execute("CHECKPOINT").await.unwrap();
    let session = SessionId(Uuid::new_v4());
    let before = wal(&mut admin).await;
    let mut spent = Duration::ZERO;
    for first in (0..n).step_by(STRETCH) {
        let mut all = Vec::new();
        let end = n.min(first + STRETCH);
        for at in (first..end).step_by(batch) {
            let mut leaves: Vec<Leaf> = (0..batch.min(end - at))
                .map(|_| Leaf {
                    id: AggregateId(Uuid::now_v7()),
                    sequence: 0,
                    state: AnyState::empty(AggregateType::Resource),
                })
                .collect();
            let mut steps = Vec::new();
            for number in 0..3 {
                steps.push(step(&mut leaves, session, number, at).await);
            }
            all.push(steps);
        }
        let all = Arc::new(Mutex::new(all));
        let start = Instant::now();
        let running = (0..lanes).map(|_| {
            let (store, all) = (store.clone(), all.clone());
            tokio::spawn(async move {
                loop {
                    let Some(steps) = all.lock().unwrap().pop() else { return };
                    for batch in steps {
                        let appended = store.append(&batch).await.unwrap();
                        assert_eq!(appended.conflicts, []);
                    }
                }
            })
        });
        for lane in running.collect::<Vec<_>>() {
            lane.await.unwrap();
        }
        spent += start.elapsed();
    }
    let wal = wal(&mut admin).await - before;
    let pids: Vec<i32> = sqlx::query_scalar(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%converge.append%' AND pid <> pg_backend_pid()",
    )
    .fetch_all(&mut admin)
    .await
    .unwrap();
    say("append", n, spent, cpu(&pids), wal);
    // A session hands in its counts of updates when it ends.
    drop(store);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let hot: Option<f64> = sqlx::query_scalar(
        "SELECT n_tup_hot_upd::float8 / nullif(n_tup_upd, 0) FROM pg_stat_user_tables WHERE relid = 'converge.head'::regclass",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap();
    let left: i64 = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM converge.queue) + (SELECT count(*) FROM converge.child)",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap();
    println!("         HOT {:.3}, {left} narrow rows left", hot.unwrap_or(0.0));
}

type FloorRows = (Vec<Uuid>, Vec<String>, [Vec<String>; 2], [Vec<String>; 3]);

/// Rows of the sizes that the floor's own scenario has.
async fn floor_rows(first: usize, count: usize) -> FloorRows {
    let mut rows: FloorRows = Default::default();
    for number in first..first + count {
        let id = AggregateId(Uuid::now_v7());
        let mut leaves = [Leaf { id, sequence: 0, state: AnyState::empty(AggregateType::Resource) }];
        rows.0.push(id.0);
        rows.1.push(format!("leaf-{number:08}"));
        for at in 0..3 {
            let batch = step(&mut leaves, SessionId(Uuid::nil()), at, number).await;
            rows.3[at].push(batch.events[0].event.to_json().unwrap());
            if at != 1 {
                rows.2[at / 2].push(leaves[0].state.to_json().unwrap());
            }
        }
    }
    rows
}

async fn floor(url: &str, n: usize, batch: usize, lanes: usize) {
    let mut admin = reset(url).await;
    admin.execute(FLOOR[0]).await.unwrap();
    admin.execute("CHECKPOINT").await.unwrap();
    let metadata =
        serde_json::json!({"actor": "bench", "command_id": Uuid::nil(), "correlation_id": Uuid::nil()})
            .to_string();
    let before = wal(&mut admin).await;
    let mut spent = Duration::ZERO;
    let mut connections = Vec::new();
    let mut pids: Vec<i32> = Vec::new();
    for _ in 0..lanes {
        let mut connection = PgConnection::connect(url).await.unwrap();
        pids.push(connection.fetch_one("SELECT pg_backend_pid()").await.unwrap().get(0));
        connections.push(connection);
    }
    for first in (0..n).step_by(STRETCH) {
        let mut all = Vec::new();
        let end = n.min(first + STRETCH);
        for at in (first..end).step_by(batch) {
            all.push(floor_rows(at, batch.min(end - at)).await);
        }
        let all = Arc::new(Mutex::new(all));
        let start = Instant::now();
        let running: Vec<_> = connections
            .drain(..)
            .map(|mut connection| {
                let (all, metadata) = (all.clone(), metadata.clone());
                tokio::spawn(async move {
                    loop {
                        let Some((ids, names, states, events)) = all.lock().unwrap().pop() else {
                            return connection;
                        };
                        let apply = sqlx::query(FLOOR[1]).bind(&ids).bind(&names).bind(&states[0]);
                        apply.bind(&events[0]).bind(&metadata).execute(&mut connection).await.unwrap();
                        let claim = sqlx::query(FLOOR[2]).bind(&ids).bind(&events[1]).bind(&metadata);
                        claim.execute(&mut connection).await.unwrap();
                        let done = sqlx::query(FLOOR[3]).bind(&ids).bind(&states[1]).bind(&events[2]);
                        done.bind(&metadata).execute(&mut connection).await.unwrap();
                    }
                })
            })
            .collect();
        for lane in running {
            connections.push(lane.await.unwrap());
        }
        spent += start.elapsed();
    }
    let wal = wal(&mut admin).await - before;
    say("floor", n, spent, cpu(&pids), wal);
}
