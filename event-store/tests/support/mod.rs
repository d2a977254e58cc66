//! What the store's tests share: databases, hand-made batches, and a projector.
#![allow(dead_code, reason = "each test binary uses its part")]

use converge_domain::document::ProviderConfigDocument;
use converge_domain::guard::Guard;
use converge_domain::provider_config::{ProviderConfigCommand, ProviderConfigEvent};
use converge_domain::{
    Address, AggregateId, AggregateType, AnyCommand, AnyEvent, AnyState, BatchId, CommandId, ResourceId,
    ResourceRef, Sequence, Timestamp,
};
use converge_event_store::{
    Batch, CommandGroup, HeadChange, HeadRow, InlineProjector, InlineRows, Metadata, NewEvent, PgOptions,
    PgStore, migrate,
};
use embedded_postgres::testkit::TestDatabase;
use std::sync::Arc;
use uuid::Uuid;

/// A migrated database of its own.
pub async fn database() -> TestDatabase {
    TestDatabase::from_template("event_store", |url| async move {
        let pool = sqlx::PgPool::connect(&url).await.map_err(|error| error.to_string())?;
        migrate(&pool).await.map_err(|error| error.to_string())?;
        pool.close().await;
        Ok::<(), String>(())
    })
    .await
}

/// Options for tests: few connections, no notifications unless a test is about them.
pub fn quiet() -> PgOptions {
    PgOptions { readers_max: 4, notify: false, ..PgOptions::default() }
}

/// A store on a fresh database.
pub async fn pg_store() -> (TestDatabase, Arc<PgStore>) {
    let database = database().await;
    let store = PgStore::connect(database.url(), quiet()).await.unwrap();
    (database, Arc::new(store))
}

pub fn id() -> AggregateId {
    AggregateId(Uuid::new_v4())
}

pub fn resource(id: AggregateId) -> ResourceId {
    ResourceId(id.0)
}

/// A head of a resource with nothing special about it.
pub fn head(id: AggregateId) -> HeadRow {
    HeadRow {
        id,
        kind: "vpc".to_owned(),
        kind_version: 1,
        name: id.to_string(),
        parent: None,
        phase: None,
        standing: None,
        subtree: None,
        pass_id: None,
        outward: 0,
        state: AnyState::empty(AggregateType::Resource),
    }
}

/// A batch under construction.
pub struct Builder {
    pub batch: Batch,
}

impl Default for Builder {
    fn default() -> Self {
        let batch = Batch {
            batch_id: BatchId(Uuid::now_v7()),
            events: Vec::new(),
            heads: Vec::new(),
            guards: Vec::new(),
            commands: Vec::new(),
        };
        Self { batch }
    }
}

impl Builder {
    /// One event on `id`, whose head is at `expected`.
    pub fn write(self, unit: u32, id: AggregateId, expected: u64) -> Self {
        self.write_with(unit, id, expected, |_, _| {})
    }

    /// The same with a head and rows to the test's liking.
    pub fn write_with(
        mut self,
        unit: u32,
        id: AggregateId,
        expected: u64,
        adjust: impl FnOnce(&mut HeadRow, &mut InlineRows),
    ) -> Self {
        let (mut head, mut rows) = (head(id), InlineRows::default());
        adjust(&mut head, &mut rows);
        let sequence = Sequence(expected + 1);
        self.batch.events.push(NewEvent {
            unit,
            aggregate_type: AggregateType::ProviderConfig,
            aggregate_id: id,
            sequence,
            event: AnyEvent::ProviderConfig(ProviderConfigEvent::Deleted { at: Timestamp(1) }),
            metadata: Arc::new(Metadata::from([("actor".to_owned(), "test".to_owned())])),
        });
        self.batch.heads.push(HeadChange {
            unit,
            aggregate_type: AggregateType::Resource,
            expected: Sequence(expected),
            sequence,
            head,
            rows,
        });
        self
    }

    pub fn guard(mut self, unit: u32, guard: Guard) -> Self {
        self.batch.guards.push((unit, guard));
        self
    }

    pub fn command(mut self, unit: u32, id: CommandId) -> Self {
        self.batch.commands.push((unit, id));
        self
    }
}

/// Writes heads and names of provider configs: the simplest real aggregate. The head stays after a deletion, so that
/// the stream of a name goes on when it is declared again.
pub struct Projector;

impl InlineProjector for Projector {
    fn project(&self, address: Address, before: &AnyState, after: &AnyState) -> (HeadRow, InlineRows) {
        let document = |state: &AnyState| match state {
            AnyState::ProviderConfig(state) => state.document.clone(),
            _ => None,
        };
        let name = |state: &AnyState| {
            document(state).map(|document| ResourceRef::new("provider-config", &document.name))
        };
        let mut head = head(address.id);
        head.state = after.clone();
        if let Some(document) = document(after) {
            head.name = document.name.clone();
        }
        if let AnyState::Resource(state) = after {
            head.parent = state.identity.as_ref().and_then(|identity| identity.owner());
            head.phase = Some(state.phase());
            head.standing = Some(state.standing());
            head.subtree = Some(state.subtree);
            head.pass_id = state.pass.as_ref().map(|pass| pass.pass_id);
        }
        let (old, new) = (name(before), name(after));
        let rows = InlineRows {
            name_taken: new.clone().filter(|_| old != new),
            name_freed: old.filter(|old| Some(old) != new.as_ref()),
            ..InlineRows::default()
        };
        (head, rows)
    }
}

pub fn config_address(id: AggregateId) -> Address {
    Address { aggregate_type: AggregateType::ProviderConfig, id }
}

/// Declares a provider config; `spec` tells declarations apart.
pub fn declare(name: &str, spec: u64) -> AnyCommand {
    let document = ProviderConfigDocument {
        name: name.to_owned(),
        kind: "vpc".to_owned(),
        kind_version: 1,
        is_default: false,
        spec: serde_json::json!({ "n": spec }),
        data: None,
    };
    AnyCommand::ProviderConfig(ProviderConfigCommand::Declare {
        document: Box::new(document),
        owner: None,
        at: Timestamp(1),
    })
}

pub fn delete() -> AnyCommand {
    AnyCommand::ProviderConfig(ProviderConfigCommand::Delete { owner: None, at: Timestamp(2) })
}

pub fn group(steps: Vec<(AggregateId, AnyCommand)>) -> CommandGroup {
    CommandGroup {
        command_id: None,
        metadata: Arc::new(Metadata::from([("actor".to_owned(), "test".to_owned())])),
        steps: steps.into_iter().map(|(id, command)| (config_address(id), command)).collect(),
        ..CommandGroup::default()
    }
}
