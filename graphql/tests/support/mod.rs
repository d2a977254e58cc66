//! A whole API on a free port, over a store in memory, a real list and an engine that only pretends.

#![allow(dead_code, reason = "each test binary uses its part")]

#[path = "../../../projections/tests/support/database.rs"]
pub mod database;
pub mod edges;
#[path = "../../../projections/tests/support/feed.rs"]
pub mod feed;
pub mod gateway;
pub mod http;
#[path = "../../../projections/tests/support/story.rs"]
pub mod story;
pub mod websocket;

use converge_domain::{Address, AggregateId, AnyState, BatchId, Position};
use converge_event_store::{Batch, HeadChange, InlineProjector, MemoryStore, NewEvent, Store};
use converge_graphql::ApiState;
use converge_projections::catch_up::{Board, ResourceList, Runner};
use converge_projections::inline::StateProjector;
use embedded_postgres::testkit::TestDatabase;
use feed::MemoryFeed;
use gateway::FakeGateway;
use serde_json::Value;
use sqlx::PgPool;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use story::Story;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub const GENEROUS: Duration = Duration::from_secs(60);

pub struct World {
    pub story: Story,
    pub store: MemoryStore,
    pub gateway: Arc<FakeGateway>,
    pub feed: MemoryFeed,
    pub board: Board,
    pub pool: PgPool,
    pub address: SocketAddr,
    /// Stops the list projection.
    pub freeze: CancellationToken,
    pub shutdown: CancellationToken,
    states: HashMap<AggregateId, AnyState>,
    appended: usize,
    _running: Vec<AbortOnDropHandle<()>>,
    _database: TestDatabase,
}

impl World {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A world whose API state was changed by `tune` before it was served.
    pub async fn with(tune: impl FnOnce(&mut ApiState)) -> Self {
        let (database, pool) = database::database().await;
        let (store, feed, board) = (MemoryStore::new(), MemoryFeed::new(Vec::new(), 5), Board::default());
        let gateway = Arc::new(FakeGateway::default());
        let freeze = CancellationToken::new();
        let runner = Runner::new(Arc::new(ResourceList), pool.clone(), Arc::new(feed.clone()), &board);
        let runner = tokio::spawn(runner.run(freeze.clone()));

        let mut state = ApiState::new(
            Arc::clone(&gateway) as _,
            Arc::new(store.clone()),
            Arc::new(feed.clone()),
            pool.clone(),
            board.clone(),
        );
        tune(&mut state);
        let shutdown = state.shutdown.clone();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            converge_graphql::serve(listener, state).await.unwrap();
        });
        Self {
            story: Story::default(),
            store,
            gateway,
            feed,
            board,
            pool,
            address,
            freeze,
            shutdown,
            states: HashMap::new(),
            appended: 0,
            _running: vec![AbortOnDropHandle::new(runner), AbortOnDropHandle::new(server)],
            _database: database,
        }
    }

    /// Appends what the story has told since, and returns the end of the log.
    pub async fn append(&mut self) -> Position {
        let new = self.story.events[self.appended..].to_vec();
        for event in &new {
            let address = Address { aggregate_type: event.aggregate_type, id: event.aggregate_id };
            let before = self
                .states
                .get(&event.aggregate_id)
                .cloned()
                .unwrap_or_else(|| AnyState::empty(event.aggregate_type));
            let mut after = before.clone();
            after.apply(&event.event);
            let (head, rows) = StateProjector.project(address, &before, &after);
            let batch = Batch {
                batch_id: BatchId(uuid::Uuid::now_v7()),
                events: vec![NewEvent {
                    unit: 0,
                    aggregate_type: event.aggregate_type,
                    aggregate_id: event.aggregate_id,
                    sequence: event.sequence,
                    event: event.event.clone(),
                    metadata: Arc::clone(&event.metadata),
                }],
                heads: vec![HeadChange {
                    unit: 0,
                    aggregate_type: event.aggregate_type,
                    expected: converge_domain::Sequence(event.sequence.0 - 1),
                    sequence: event.sequence,
                    head,
                    rows,
                }],
                guards: Vec::new(),
                commands: Vec::new(),
            };
            let appended = self.store.append(&batch).await.unwrap();
            assert_eq!((appended.first, appended.conflicts), (event.position, Vec::new()));
            self.states.insert(event.aggregate_id, after);
        }
        self.appended = self.story.events.len();
        self.feed.extend(&new);
        Position(self.appended as u64)
    }

    /// The same, and waits until the list shows it.
    pub async fn sync(&mut self) -> Position {
        let end = self.append().await;
        self.board.wait("resource_list", end, GENEROUS).await.unwrap();
        end
    }

    /// Executes a query and returns the whole answer.
    pub async fn ask(&self, query: &str, variables: Value) -> Value {
        let body = serde_json::json!({"query": query, "variables": variables}).to_string();
        self.ask_raw(&body).await
    }

    pub async fn ask_raw(&self, body: &str) -> Value {
        let headers = [("content-type", "application/json")];
        let reply = http::send(self.address, "POST", "/graphql", &headers, body.as_bytes()).await;
        serde_json::from_slice(&reply.body).unwrap()
    }

    /// The data of a query that must succeed.
    pub async fn data(&self, query: &str, variables: Value) -> Value {
        let mut answer = self.ask(query, variables).await;
        assert!(answer.get("errors").is_none(), "{answer}");
        answer["data"].take()
    }

    /// The code of the one error of a query that must fail.
    pub async fn code(&self, query: &str, variables: Value) -> String {
        let answer = self.ask(query, variables).await;
        answer["errors"][0]["extensions"]["code"]
            .as_str()
            .unwrap_or_else(|| panic!("no code in {answer}"))
            .to_owned()
    }
}
