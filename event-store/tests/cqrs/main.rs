//! The field's libraries over this log: cqrs-es commits through it, postgres-es reads it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../support/mod.rs"]
mod support;

use converge_domain::provider_config::{ProviderConfigError, ProviderConfigState};
use converge_domain::{AnyCommand, Position};
use converge_event_store::{CqrsStore, Log, LogConfig, MemoryStore, Store};
use cqrs_es::persist::PersistedEventRepository;
use cqrs_es::{AggregateError, CqrsFramework, EventStore};
use postgres_es::PostgresEventRepository;
use std::sync::Arc;
use support::{Projector, declare, delete, group, id, pg_store};

fn command(command: AnyCommand) -> converge_domain::provider_config::ProviderConfigCommand {
    let AnyCommand::ProviderConfig(command) = command else { panic!("another aggregate") };
    command
}

async fn the_framework_runs_over(store: Arc<dyn Store>) {
    let adapter = CqrsStore::new(store.clone(), Arc::new(Projector));
    let framework = CqrsFramework::<ProviderConfigState, _>::new(adapter.clone(), vec![], ());
    let a = id().to_string();
    framework.execute(&a, command(declare("a", 1))).await.unwrap();
    framework.execute(&a, command(declare("a", 2))).await.unwrap();
    framework.execute(&a, command(delete())).await.unwrap();
    let refused = framework.execute(&a, command(delete())).await;
    assert!(matches!(refused, Err(AggregateError::UserError(ProviderConfigError::NotFound))));
    let events = EventStore::<ProviderConfigState>::load_events(&adapter, &a).await.unwrap();
    assert_eq!(events.iter().map(|event| event.sequence).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(store.log_head().await.unwrap().position, Position(3));

    // A context that was loaded before somebody else's commit is a conflict.
    let old = EventStore::<ProviderConfigState>::load_aggregate(&adapter, &a).await.unwrap();
    framework.execute(&a, command(declare("a", 3))).await.unwrap();
    let late = EventStore::<ProviderConfigState>::commit(
        &adapter,
        vec![events[0].payload.clone()],
        old,
        std::collections::HashMap::new(),
    );
    assert!(matches!(late.await, Err(AggregateError::AggregateConflict)));
}

#[tokio::test]
async fn cqrs_framework_runs_over_the_store_in_memory() {
    the_framework_runs_over(Arc::new(MemoryStore::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cqrs_framework_runs_over_postgres() {
    let (_database, store) = pg_store().await;
    the_framework_runs_over(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_es_reads_what_the_log_appended() {
    let (database, store) = pg_store().await;
    let log = Log::start(store.clone(), Arc::new(Projector), LogConfig::default()).await.unwrap();
    let (a, b) = (id(), id());
    log.execute(group(vec![(a, declare("a", 1)), (b, declare("b", 1)), (a, declare("a", 2))])).await.unwrap();
    let repository = PostgresEventRepository::new(database.pool().await)
        .with_tables("converge.events_es", "converge.no_snapshots");
    let theirs = repository.get_events::<ProviderConfigState>(&a.to_string()).await.unwrap();
    let ours = store.read_stream(a, converge_domain::Sequence(0), 10).await.unwrap();
    assert_eq!(theirs.len(), 2);
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(theirs.sequence as u64, ours.sequence.0);
        assert_eq!(theirs.event_type, ours.event.event_type());
        assert_eq!(
            theirs.payload.to_string(),
            serde_json::to_value(ours.event_payload()).unwrap().to_string()
        );
        assert_eq!(theirs.metadata["actor"], "test");
    }
    let rest = repository.get_last_events::<ProviderConfigState>(&a.to_string(), 1).await.unwrap();
    assert_eq!(rest.len(), 1);
}

trait Payload {
    fn event_payload(&self) -> serde_json::Value;
}

impl Payload for converge_event_store::StoredEvent {
    fn event_payload(&self) -> serde_json::Value {
        serde_json::from_str(&self.event.to_json().unwrap()).unwrap()
    }
}
