//! The whole way, on the real log: commands in, rows out.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use converge_domain::resource::{Declare, ResourceCommand, Shape};
use converge_domain::{Address, AggregateType, AnyCommand, ResourceId, ResourceRef, Timestamp};
use converge_event_store::{CommandGroup, Log, LogConfig, PgOptions, PgStore};
use converge_projections::catch_up::resource_list::{Filter, Reader};
use converge_projections::catch_up::{Board, ResourceList, Runner};
use converge_projections::inline::StateProjector;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

fn declare(name: &str) -> CommandGroup {
    let id = ResourceId(Uuid::now_v7());
    let declare = Declare {
        id,
        reference: ResourceRef::new("vpc", name),
        kind_version: 1,
        spec: Arc::new(serde_json::json!({"cidr": "10.0.0.0/8"})),
        labels: BTreeMap::new(),
        provider_config_ref: None,
        deletion_protection: None,
        edges: Vec::new(),
        shape: Arc::new(Shape::default()),
        behind: None,
        composer: None,
        expected_revision: None,
        at: Timestamp(1_700_000_000_000),
    };
    CommandGroup {
        command_id: None,
        metadata: Arc::default(),
        steps: vec![(
            Address { aggregate_type: AggregateType::Resource, id: id.into() },
            AnyCommand::Resource(ResourceCommand::Declare(Box::new(declare))),
        )],
        ..CommandGroup::default()
    }
}

#[tokio::test]
async fn what_is_appended_before_and_while_the_projection_runs_is_listed_once_each() {
    let (database, pool) = support::database::database().await;
    let store = Arc::new(PgStore::connect(database.url(), PgOptions::default()).await.unwrap());
    let log = Log::start(store.clone(), Arc::new(StateProjector), LogConfig::default()).await.unwrap();
    for n in 0..50 {
        log.execute(declare(&format!("early-{n:03}"))).await.unwrap();
    }
    let (board, stop) = (Board::default(), CancellationToken::new());
    let runner = Runner::new(Arc::new(ResourceList), pool.clone(), Arc::new(log.tail()), &board);
    let running = tokio::spawn(runner.run(stop.clone()));
    let late: Vec<_> = (0..200).map(|n| log.submit(declare(&format!("late-{n:03}"))).unwrap()).collect();
    let mut end = converge_domain::Position(0);
    for answer in late {
        end = end.max(answer.await.unwrap().unwrap().position);
    }
    board.wait("resource_list", end, Duration::from_secs(60)).await.unwrap();
    let listed = Reader::new(pool, store).page(&Filter::default(), None, 1000).await.unwrap();
    assert_eq!((listed.position, listed.value.rows.len()), (end, 250));
    stop.cancel();
    running.await.unwrap();
    log.shutdown().await;
}
