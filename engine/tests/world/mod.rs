//! A whole world in memory: the engine over the in-memory store, and a worker without a network.

#![allow(dead_code, reason = "each test file uses the part it needs")]

use converge_domain::document::{self, Document};
use converge_domain::resource::{Phase, Reaction, ResourceEvent, ResourceState};
use converge_domain::{AnyEvent, KindRef, Position, ResourceRef};
use converge_engine::dispatch::{
    ClaimRequest, Dispatch, Recorded, StagedFrame, Task, TaskOutcome, TaskResult,
};
use converge_engine::gateway_api::{
    ActRequest, Acted, Action, Applied, DeleteRequest, Gateway, GatewayError, RequestContext,
};
use converge_engine::{Engine, EngineConfig, EngineParts};
use converge_event_store::{Log, LogConfig, MemoryStore, StagedPart, Store, StoredEvent};
use converge_projections::inline::StateProjector;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long a test waits for something that must happen; never how long anything takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a provider answers.
pub enum Answer {
    Done(Value),
    /// Children and edges of a composition.
    Composed(Vec<Value>, Vec<Value>),
    /// The same, with provider configs.
    Configured(Vec<Value>, Vec<Value>, Vec<Value>),
    /// A success that says how it found the resource.
    Found {
        status: Value,
        healthy: bool,
    },
    Failed {
        message: &'static str,
        terminal: bool,
    },
}

type Handler = dyn Fn(&Task, &[Value]) -> Answer + Send + Sync;

pub struct World {
    pub store: Arc<dyn Store>,
    pub log: Log,
    pub engine: Engine,
    pub gateway: Arc<dyn Gateway>,
    pub dispatch: Arc<dyn Dispatch>,
    /// Every task that a worker took: `(kind/name, reaction, idempotency key)`.
    pub tasks: Arc<Mutex<Vec<(String, Reaction, String)>>>,
    /// Outcomes under a dead fence are no surprise to the test.
    pub may_be_fenced: bool,
    worker: Option<JoinHandle<()>>,
}

impl World {
    pub async fn new() -> Self {
        Self::over(Arc::new(MemoryStore::default())).await
    }

    pub async fn over(store: Arc<dyn Store>) -> Self {
        let log =
            Log::start(store.clone(), Arc::new(StateProjector), LogConfig::default()).await.expect("a log");
        // Short leases, so that a dead process is noticed while the test waits; no test depends on how short.
        let config = EngineConfig {
            beat: Duration::from_millis(50),
            lease: Duration::from_millis(400),
            ..EngineConfig::default()
        };
        let parts = EngineParts { store: store.clone(), log: log.clone(), config };
        let engine = Engine::start(parts).await.expect("an engine");
        Self {
            gateway: engine.gateway(),
            dispatch: engine.dispatch(),
            store,
            log,
            engine,
            tasks: Arc::default(),
            may_be_fenced: false,
            worker: None,
        }
    }

    /// Connects a worker that serves `kinds` and answers by `handler`, which also gets the task's paged input.
    pub fn serve(
        &mut self,
        kinds: &[(&str, u16)],
        handler: impl Fn(&Task, &[Value]) -> Answer + Send + Sync + 'static,
    ) {
        let kinds: Vec<KindRef> = kinds.iter().map(|(kind, version)| KindRef::new(*kind, *version)).collect();
        self.dispatch.report_served(kinds.iter().map(|kind| (kind.clone(), 1)).collect());
        let worker = Worker {
            dispatch: self.dispatch.clone(),
            kinds,
            handler: Arc::new(handler),
            tasks: self.tasks.clone(),
            may_be_fenced: self.may_be_fenced,
        };
        self.worker = Some(tokio::spawn(worker.run()));
    }

    /// Another worker beside the first, so that a handler that blocks holds up only its own kinds.
    pub fn second_worker(&self) -> SecondWorker {
        SecondWorker { dispatch: self.dispatch.clone(), tasks: self.tasks.clone(), worker: None }
    }

    /// This process ends; the store stays.
    pub async fn end(mut self) -> Arc<dyn Store> {
        self.kill_worker();
        self.engine.shutdown().await;
        self.log.shutdown().await;
        self.store
    }

    /// The worker goes away in the middle of whatever it does.
    pub fn kill_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.abort();
        }
    }

    pub async fn apply(&self, documents: Vec<Value>) -> Result<Vec<Applied>, GatewayError> {
        let documents: Vec<Document> =
            documents.into_iter().map(|value| document::parse(value, None).expect("a document")).collect();
        let context = RequestContext { actor: "test".into(), ..RequestContext::default() };
        Ok(self.gateway.apply(documents, context).await?.applied)
    }

    /// Asks for the end of several; what the answer names.
    pub async fn delete_all(
        &self,
        targets: &[(&str, &str)],
        cascade: bool,
    ) -> Result<Vec<String>, GatewayError> {
        let context = RequestContext { actor: "test".into(), ..RequestContext::default() };
        let targets = targets.iter().map(|(kind, name)| ResourceRef::new(*kind, *name)).collect();
        let answer = self.gateway.delete(DeleteRequest { targets, cascade }, context).await?;
        Ok(answer.going.iter().map(|going| going.reference.to_string()).collect())
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        let context = RequestContext { actor: "test".into(), ..RequestContext::default() };
        self.gateway
            .delete(DeleteRequest { targets: vec![ResourceRef::new(kind, name)], cascade: false }, context)
            .await
            .expect("the delete is accepted");
    }

    /// An operator acts on one resource.
    pub async fn act(&self, kind: &str, name: &str, action: Action) -> Result<Acted, GatewayError> {
        let context = RequestContext { actor: "operator".into(), ..RequestContext::default() };
        let targets = vec![ResourceRef::new(kind, name)];
        let request = ActRequest { targets, action, reason: "a test says so".into() };
        Ok(self.gateway.act(request, context).await?.acted.remove(0))
    }

    /// The message of a resource's condition, if it has one of that type.
    pub async fn condition(&self, kind: &str, name: &str, condition_type: &str) -> Option<String> {
        let conditions = self.get(kind, name).await?.conditions();
        let found = conditions.into_iter().find(|condition| condition.condition_type == condition_type)?;
        Some(found.message)
    }

    /// Tasks that a worker got so far.
    pub fn tasks_of(&self, reference: &str) -> Vec<Reaction> {
        let tasks = self.tasks.lock().expect("not poisoned");
        tasks.iter().filter(|(name, ..)| name == reference).map(|(_, reaction, _)| *reaction).collect()
    }

    pub async fn get(&self, kind: &str, name: &str) -> Option<Arc<ResourceState>> {
        self.gateway.resource(&ResourceRef::new(kind, name)).await.expect("a read")
    }

    pub async fn why(&self, kind: &str, name: &str) -> String {
        let state = self.get(kind, name).await.expect("it exists");
        self.gateway.why(state.id().id).await.expect("a reason").sentence
    }

    /// Follows the log until `done` holds of the resource.
    pub async fn until(&self, kind: &str, name: &str, done: impl Fn(Option<&ResourceState>) -> bool) {
        let mut follower = self.log.tail().follow(Position(0));
        let waiting = async {
            loop {
                if done(self.get(kind, name).await.as_deref()) {
                    return;
                }
                follower.next().await.expect("the log can be followed");
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            let state = self.get(kind, name).await;
            let why = match &state {
                Some(_) => self.why(kind, name).await,
                None => "gone".to_owned(),
            };
            panic!(
                "{kind}/{name} did not get there: {:?}, {why}\n{}",
                state.map(|s| s.phase()),
                self.story().await
            );
        }
    }

    pub async fn until_ready(&self, kind: &str, name: &str) {
        self.until(kind, name, |state| state.is_some_and(|state| state.phase() == Phase::Ready)).await;
    }

    pub async fn until_gone(&self, kind: &str, name: &str) {
        self.until(kind, name, |state| state.is_none()).await;
    }

    pub async fn events(&self) -> Vec<StoredEvent> {
        self.store.read(Position(0), 100_000).await.expect("the log can be read")
    }

    pub async fn head(&self) -> Position {
        self.store.log_head().await.expect("the log has an end").position
    }

    /// `kind/name Event` for every event of a resource after `after`.
    pub async fn story_after(&self, after: Position) -> Vec<String> {
        let mut names: HashMap<_, String> = HashMap::new();
        let mut story = Vec::new();
        for stored in self.events().await {
            let AnyEvent::Resource(event) = &stored.event else { continue };
            if let ResourceEvent::Created(created) = event {
                names.insert(stored.aggregate_id, format!("{}/{}", created.kind, created.name));
            }
            if stored.position > after {
                story.push(format!("{} {}", names[&stored.aggregate_id], event.name()));
            }
        }
        story
    }

    pub async fn story(&self) -> String {
        let story = self.story_after(Position(0)).await;
        story[story.len().saturating_sub(60)..].join("\n")
    }

    /// Checks over the whole stream what must hold at every event.
    pub async fn check_invariants(&self) {
        check_invariants(&self.events().await);
    }
}

/// Positions are contiguous; `synced_gen ≤ generation`; epochs rise; no composite is Ready over an unready child.
pub fn check_invariants(events: &[StoredEvent]) {
    use cqrs_es::Aggregate;
    let mut states: HashMap<_, ResourceState> = HashMap::new();
    for (at, stored) in events.iter().enumerate() {
        assert_eq!(stored.position, Position(at as u64 + 1), "positions are contiguous");
        let AnyEvent::Resource(event) = &stored.event else { continue };
        let id = stored.aggregate_id;
        let state = states.entry(id).or_default();
        let epoch = state.epoch;
        assert_eq!(stored.sequence.0, state.sequence + 1, "streams are contiguous");
        state.apply(event.clone());
        assert!(state.synced_gen <= state.generation);
        if let ResourceEvent::Claimed(claim) = event {
            assert!(claim.epoch > epoch, "epochs rise");
        }
        if state.deleted {
            states.remove(&id);
            continue;
        }
        let moved = states[&id].clone();
        let mut to_check = vec![moved.clone()];
        to_check.extend(moved.id().owner().and_then(|owner| states.get(&owner.into()).cloned()));
        for owner in to_check {
            if owner.phase() != Phase::Ready || !owner.shape.composes {
                continue;
            }
            for child in states.values() {
                let counts = child.dropped.is_none() && child.quarantine.is_none();
                if child.id().owner() == Some(owner.id().id) && counts {
                    assert_eq!(
                        child.phase(),
                        Phase::Ready,
                        "{} is Ready at {} over {}, which is not",
                        owner.id().reference(),
                        stored.position,
                        child.id().reference()
                    );
                }
            }
        }
    }
}

/// See [`World::second_worker`]; it goes when this is dropped.
pub struct SecondWorker {
    dispatch: Arc<dyn Dispatch>,
    tasks: Arc<Mutex<Vec<(String, Reaction, String)>>>,
    worker: Option<JoinHandle<()>>,
}

impl SecondWorker {
    pub fn serve(
        &mut self,
        kinds: &[(&str, u16)],
        handler: impl Fn(&Task, &[Value]) -> Answer + Send + Sync + 'static,
    ) {
        let worker = Worker {
            dispatch: self.dispatch.clone(),
            kinds: kinds.iter().map(|(kind, version)| KindRef::new(*kind, *version)).collect(),
            handler: Arc::new(handler),
            tasks: self.tasks.clone(),
            may_be_fenced: false,
        };
        self.worker = Some(tokio::spawn(worker.run()));
    }
}

impl Drop for SecondWorker {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.abort();
        }
    }
}

struct Worker {
    dispatch: Arc<dyn Dispatch>,
    kinds: Vec<KindRef>,
    handler: Arc<Handler>,
    tasks: Arc<Mutex<Vec<(String, Reaction, String)>>>,
    may_be_fenced: bool,
}

impl Worker {
    async fn run(self) {
        let mut wakeups = self.dispatch.wakeups();
        loop {
            let mut busy = false;
            for kind in &self.kinds {
                let request = ClaimRequest {
                    kind: kind.clone(),
                    limit: 64,
                    session: self.dispatch.session(),
                    worker: "test-worker".into(),
                };
                let tasks = self.dispatch.claim(request).await.expect("a claim");
                busy |= !tasks.is_empty();
                let work = tasks.into_iter().map(|task| self.handle(task));
                futures::future::join_all(work).await;
            }
            if !busy {
                // Lagging means that something was woken: look again.
                let _ = wakeups.recv().await;
            }
        }
    }

    async fn handle(&self, task: Task) {
        let reference = format!("{}/{}", task.kind.kind, task.name);
        self.tasks.lock().expect("not poisoned").push((
            reference.clone(),
            task.reaction,
            task.idempotency_key.clone(),
        ));
        let input = self.input(&task).await;
        let result = match (self.handler)(&task, &input) {
            Answer::Done(status) => success(Some(status), None, [0; 3]),
            Answer::Found { status, healthy } => success(Some(status), Some(healthy), [0; 3]),
            Answer::Composed(children, edges) => self.composed(&task, &children, &edges, &[]).await,
            Answer::Configured(children, edges, configs) => {
                self.composed(&task, &children, &edges, &configs).await
            }
            Answer::Failed { message, terminal } => {
                TaskResult::Failure { message: message.to_owned(), terminal, status: None }
            }
        };
        let outcome = TaskOutcome { fence: task.fence, kind: task.kind, result };
        let recorded = self.dispatch.record(outcome).await.expect("an outcome is recorded");
        // What was given up meanwhile has no use for an answer.
        assert!(recorded == Recorded::Accepted || self.may_be_fenced, "{reference}'s outcome was fenced");
    }

    async fn composed(
        &self,
        task: &Task,
        children: &[Value],
        edges: &[Value],
        configs: &[Value],
    ) -> TaskResult {
        let (edges_at, configs_at) = (children.len(), children.len() + edges.len());
        self.stage(task, 0, StagedPart::Child, children).await;
        self.stage(task, edges_at as i64, StagedPart::Edge, edges).await;
        self.stage(task, configs_at as i64, StagedPart::Config, configs).await;
        success(None, None, [children, edges, configs].map(|part| part.len() as u64))
    }

    async fn input(&self, task: &Task) -> Vec<Value> {
        let Some(part) = task.paged_input else { return vec![] };
        let mut items = Vec::new();
        let mut after = None;
        loop {
            let page = self.dispatch.input_page(task.fence, part, after).await.expect("a page");
            items.extend(serde_json::from_slice::<Vec<Value>>(&page.items).expect("a JSON array"));
            after = page.next;
            if after.is_none() {
                return items;
            }
        }
    }

    async fn stage(&self, task: &Task, first_ordinal: i64, part: StagedPart, items: &[Value]) {
        let items = items.iter().map(Value::to_string).collect();
        let frame = StagedFrame { fence: task.fence, first_ordinal, part, items };
        self.dispatch.stage(frame).await.expect("a frame is staged");
    }
}

fn success(status: Option<Value>, healthy: Option<bool>, [children, edges, configs]: [u64; 3]) -> TaskResult {
    TaskResult::Success {
        status: status.map(|status| status.to_string().into()),
        conditions: None,
        healthy,
        changed: None,
        differs: vec![],
        in_progress: false,
        requeue_after_secs: None,
        children,
        edges,
        configs,
    }
}

pub fn leaf_kind(kind: &str) -> Value {
    json!({
        "type": "kind", "kind": kind, "kind_version": 1,
        "reactions": [
            {"name": "work", "trigger": "specChange", "emits": ["status", "conditions"]},
            {"name": "teardown", "trigger": "deleteRequested", "emits": ["finalizer"], "finalizer": format!("acme/{kind}")}
        ]
    })
}

pub fn composer_kind(kind: &str) -> Value {
    json!({
        "type": "kind", "kind": kind, "kind_version": 1,
        "reactions": [
            {"name": "compose", "trigger": "specChange", "emits": ["children", "edges", "status", "conditions"]},
            {"name": "rollup", "trigger": "childrenSettled", "emits": ["status", "conditions"]},
            {"name": "teardown", "trigger": "deleteRequested", "emits": ["finalizer"], "finalizer": format!("acme/{kind}")}
        ]
    })
}

pub fn resource(kind: &str, name: &str, spec: Value) -> Value {
    json!({"type": "resource", "kind": kind, "kind_version": 1, "name": name, "spec": spec})
}

pub fn child(kind: &str, name: &str, spec: Value) -> Value {
    json!({"kind": kind, "kind_version": 1, "name": name, "spec": spec})
}

/// A resource that depends on others, each as `kind/name`.
pub fn depending(kind: &str, name: &str, on: &[&str]) -> Value {
    let mut document = resource(kind, name, json!({}));
    let target = |on: &&str| {
        let (kind, name) = on.split_once('/').expect("kind/name");
        json!({"kind": kind, "name": name})
    };
    document["depends_on"] = on.iter().map(target).collect();
    document
}

/// `from` needs `to` and gets its `/id` into `/{field}`.
pub fn flow(from: (&str, &str), to: (&str, &str), field: &str) -> Value {
    json!({
        "from": {"kind": from.0, "name": from.1}, "to": {"kind": to.0, "name": to.1},
        "values": [{"dependent_field": format!("/{field}"), "source_field": "/id"}]
    })
}
