//! The executor's promises, mostly on the store in memory, where failures can be had on demand.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod demotion;
mod failures;
mod groups;
mod property;
mod racing;
mod stream;
#[path = "../support/mod.rs"]
mod support;

use converge_event_store::{Log, LogConfig, MemoryStore, Store};
use std::sync::Arc;
use std::time::Duration;

/// A log over `store`, with limits that make tests quick.
async fn log(store: &Arc<dyn Store>) -> Log {
    let config = LogConfig {
        poll_interval: Duration::from_millis(200),
        unavailable_max: Duration::from_millis(300),
        ..LogConfig::default()
    };
    log_with(store, config).await
}

async fn log_with(store: &Arc<dyn Store>, config: LogConfig) -> Log {
    Log::start(store.clone(), Arc::new(support::Projector), config).await.unwrap()
}

fn memory() -> (MemoryStore, Arc<dyn Store>) {
    let store = MemoryStore::new();
    (store.clone(), Arc::new(store))
}
