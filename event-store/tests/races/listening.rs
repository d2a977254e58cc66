//! Hearing of other processes.

use crate::support::{Projector, database, declare, group, id};
use crate::{connect, run, until};
use converge_domain::Position;
use converge_event_store::{Log, LogConfig, PgOptions, PgStore};
use std::sync::Arc;
use std::time::Duration;

const LISTENERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'converge listen' AND query LIKE 'LISTEN%'";

async fn process(url: &str, poll_interval: Duration) -> Log {
    let options = PgOptions { readers_max: 4, notify: true, ..PgOptions::default() };
    let store = PgStore::connect(url, options).await.unwrap();
    let config = LogConfig { poll_interval, ..LogConfig::default() };
    Log::start(Arc::new(store), Arc::new(Projector), config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_is_heard_without_a_poll() {
    let database = database().await;
    let mut watch = connect(&database).await;
    let never = Duration::from_secs(3600);
    let (ours, theirs) = (process(database.url(), never).await, process(database.url(), never).await);
    until(&mut watch, 2, LISTENERS).await;
    for n in 1..=3 {
        let name = n.to_string();
        theirs.execute(group(vec![(id(), declare(&name, 1))])).await.unwrap();
        tokio::time::timeout(Duration::from_secs(60), ours.tail().wait_for(Position(n)))
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_listening_breaks_the_poll_delivers_and_then_it_is_live_again() {
    let database = database().await;
    let mut watch = connect(&database).await;
    let ours = process(database.url(), Duration::from_millis(100)).await;
    let theirs = process(database.url(), Duration::from_secs(3600)).await;
    let mut follower = ours.tail().follow(Position(0));
    until(&mut watch, 2, LISTENERS).await;
    for n in 1..=3_u64 {
        run(&mut watch, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'converge listen' AND datname = current_database()").await;
        let name = n.to_string();
        theirs.execute(group(vec![(id(), declare(&name, 1))])).await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(60), follower.next()).await.unwrap().unwrap();
        assert_eq!((next.len(), next[0].position), (1, Position(n)));
    }
    until(&mut watch, 2, LISTENERS).await;
}
