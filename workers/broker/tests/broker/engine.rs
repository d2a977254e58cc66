//! An engine without a database: queues, live fences and a log of everything it was asked.

use async_trait::async_trait;
use bytes::Bytes;
use converge_broker::BrokerConfig;
use converge_domain::resource::Reaction;
use converge_domain::{ClaimId, Epoch, Generation, KindRef, ResourceId, SessionId};
use converge_engine::dispatch::{
    ClaimRequest, DELETION, Dispatch, DispatchError, Fence, InputPage, InputPart, ProviderConfigSnapshot,
    Recorded, StagedFrame, Task, TaskOutcome, TaskResult,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// No test waits longer; reaching it means that something never happened.
pub const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub enum Fact {
    Claimed { kind: KindRef, limit: usize, given: usize },
    Staged(StagedFrame),
    Recorded(TaskOutcome, Recorded),
    Released(Fence, String),
    Resumed(Fence, bool),
    Served(Vec<(KindRef, usize)>),
}

pub struct FakeEngine {
    session: SessionId,
    kinds: Mutex<Vec<(KindRef, String)>>,
    queues: Mutex<HashMap<KindRef, VecDeque<Task>>>,
    live: Mutex<HashMap<Fence, Task>>,
    pages: Mutex<HashMap<ResourceId, Vec<Bytes>>>,
    defaults: Mutex<HashMap<KindRef, ProviderConfigSnapshot>>,
    log: Mutex<Vec<Fact>>,
    logged: watch::Sender<usize>,
    wakeups: broadcast::Sender<KindRef>,
    cancellations: broadcast::Sender<(Fence, String)>,
    configs: broadcast::Sender<KindRef>,
    /// How many of the next calls of `record` fail.
    pub record_failures: Mutex<usize>,
    /// How many pages were read.
    pub pages_read: Mutex<usize>,
}

impl FakeEngine {
    pub fn new(kinds: &[&str]) -> Arc<Self> {
        Arc::new(Self {
            session: SessionId(Uuid::new_v4()),
            kinds: Mutex::new(kinds.iter().map(|kind| (kind_ref(kind), (*kind).to_owned())).collect()),
            queues: Mutex::default(),
            live: Mutex::default(),
            pages: Mutex::default(),
            defaults: Mutex::default(),
            log: Mutex::default(),
            logged: watch::channel(0).0,
            wakeups: broadcast::channel(64).0,
            cancellations: broadcast::channel(64).0,
            configs: broadcast::channel(64).0,
            record_failures: Mutex::new(0),
            pages_read: Mutex::new(0),
        })
    }

    /// Queues a task and wakes its kind.
    pub fn enqueue(&self, task: Task) -> Fence {
        let (kind, fence) = (task.kind.clone(), task.fence);
        self.queues.lock().unwrap().entry(kind.clone()).or_default().push_back(task);
        let _ = self.wakeups.send(kind);
        fence
    }

    pub fn teach(&self, kind: &str, provider: &str) {
        self.kinds.lock().unwrap().push((kind_ref(kind), provider.to_owned()));
        let _ = self.wakeups.send(kind_ref(kind));
    }

    pub fn set_pages(&self, id: ResourceId, pages: Vec<Bytes>) {
        self.pages.lock().unwrap().insert(id, pages);
    }

    pub fn set_default(&self, kind: &str, version: u64, spec: &str) -> ProviderConfigSnapshot {
        let config = ProviderConfigSnapshot {
            name: format!("{kind}-default"),
            spec: Bytes::from(spec.to_owned()),
            data: Bytes::new(),
            version,
        };
        self.defaults.lock().unwrap().insert(kind_ref(kind), config.clone());
        let _ = self.configs.send(kind_ref(kind));
        config
    }

    /// Ends a claim behind the broker's back.
    pub fn kill(&self, fence: Fence, announce: bool) {
        self.live.lock().unwrap().remove(&fence);
        if announce {
            let _ = self.cancellations.send((fence, "another process ended it".to_owned()));
        }
    }

    /// The task's resource is going away: its claim lives, and its worker is to stop and answer.
    pub fn delete(&self, fence: Fence) {
        let _ = self.cancellations.send((fence, DELETION.to_owned()));
    }

    pub fn facts(&self) -> Vec<Fact> {
        self.log.lock().unwrap().clone()
    }

    fn note(&self, fact: Fact) {
        let mut log = self.log.lock().unwrap();
        log.push(fact);
        self.logged.send_replace(log.len());
    }

    /// Waits until `find` finds something in the log.
    pub async fn wait<T>(&self, what: &str, find: impl Fn(&[Fact]) -> Option<T>) -> T {
        let mut logged = self.logged.subscribe();
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                logged.borrow_and_update();
                if let Some(found) = find(&self.facts()) {
                    return found;
                }
                logged.changed().await.unwrap();
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => panic!("never happened: {what}; the log: {:#?}", self.facts()),
        }
    }

    pub async fn recorded(&self, fence: Fence) -> (TaskResult, Recorded) {
        self.wait("an outcome", |log| {
            log.iter().find_map(|fact| match fact {
                Fact::Recorded(outcome, recorded) if outcome.fence == fence => {
                    Some((outcome.result.clone(), *recorded))
                }
                _ => None,
            })
        })
        .await
    }

    pub async fn released(&self, fence: Fence) -> String {
        self.wait("a release", |log| {
            log.iter().find_map(|fact| match fact {
                Fact::Released(released, reason) if *released == fence => Some(reason.clone()),
                _ => None,
            })
        })
        .await
    }

    pub async fn resumed(&self, fence: Fence) -> bool {
        self.wait("a resumption", |log| {
            log.iter().find_map(|fact| match fact {
                Fact::Resumed(resumed, alive) if *resumed == fence => Some(*alive),
                _ => None,
            })
        })
        .await
    }

    pub async fn served(&self, expected: &[(&str, usize)]) {
        let expected: Vec<_> = expected.iter().map(|(kind, n)| (kind_ref(kind), *n)).collect();
        self.wait("a report of what is served", |log| {
            let last = log.iter().rev().find_map(|fact| match fact {
                Fact::Served(served) => Some(served.clone()),
                _ => None,
            });
            (last.unwrap_or_default() == expected).then_some(())
        })
        .await;
    }

    pub fn outcomes_of(&self, fence: Fence) -> usize {
        let of = |fact: &&Fact| matches!(fact, Fact::Recorded(outcome, _) if outcome.fence == fence);
        self.facts().iter().filter(of).count()
    }
}

#[async_trait]
impl Dispatch for FakeEngine {
    fn session(&self) -> SessionId {
        self.session
    }

    fn served_kinds(&self) -> Vec<(KindRef, String)> {
        self.kinds.lock().unwrap().clone()
    }

    fn wakeups(&self) -> broadcast::Receiver<KindRef> {
        self.wakeups.subscribe()
    }

    fn cancellations(&self) -> broadcast::Receiver<(Fence, String)> {
        self.cancellations.subscribe()
    }

    fn config_changes(&self) -> broadcast::Receiver<KindRef> {
        self.configs.subscribe()
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Task>, DispatchError> {
        let tasks: Vec<Task> = {
            let mut queues = self.queues.lock().unwrap();
            let queue = queues.entry(request.kind.clone()).or_default();
            let count = queue.len().min(request.limit);
            queue.drain(..count).collect()
        };
        let mut live = self.live.lock().unwrap();
        live.extend(tasks.iter().map(|task| (task.fence, task.clone())));
        drop(live);
        self.note(Fact::Claimed { kind: request.kind, limit: request.limit, given: tasks.len() });
        Ok(tasks)
    }

    async fn input_page(
        &self,
        fence: Fence,
        _: InputPart,
        after: Option<ResourceId>,
    ) -> Result<InputPage, DispatchError> {
        *self.pages_read.lock().unwrap() += 1;
        let pages = self.pages.lock().unwrap();
        let pages = pages.get(&fence.id).ok_or_else(|| DispatchError("no pages".to_owned()))?;
        let index = after.map_or(0, |after| usize::try_from(after.0.as_u128()).unwrap());
        let next = (index + 1 < pages.len()).then(|| ResourceId(Uuid::from_u128(index as u128 + 1)));
        Ok(InputPage { items: pages[index].clone(), next })
    }

    async fn stage(&self, frame: StagedFrame) -> Result<(), DispatchError> {
        self.note(Fact::Staged(frame));
        Ok(())
    }

    async fn record(&self, outcome: TaskOutcome) -> Result<Recorded, DispatchError> {
        {
            let mut failures = self.record_failures.lock().unwrap();
            if *failures > 0 {
                *failures -= 1;
                return Err(DispatchError("the database restarts".to_owned()));
            }
        }
        let was_live = self.live.lock().unwrap().remove(&outcome.fence).is_some();
        let recorded = if was_live { Recorded::Accepted } else { Recorded::Fenced };
        self.note(Fact::Recorded(outcome, recorded));
        Ok(recorded)
    }

    async fn release(&self, fence: Fence, reason: String) -> Result<(), DispatchError> {
        self.live.lock().unwrap().remove(&fence);
        self.note(Fact::Released(fence, reason));
        Ok(())
    }

    async fn resume(&self, fence: Fence) -> Result<bool, DispatchError> {
        let alive = self.live.lock().unwrap().contains_key(&fence);
        self.note(Fact::Resumed(fence, alive));
        Ok(alive)
    }

    fn default_config(&self, kind: &KindRef) -> Option<ProviderConfigSnapshot> {
        self.defaults.lock().unwrap().get(kind).cloned()
    }

    fn report_served(&self, served: Vec<(KindRef, usize)>) {
        self.note(Fact::Served(served));
    }
}

pub fn kind_ref(kind: &str) -> KindRef {
    KindRef::new(kind, 1)
}

pub fn task(kind: &str, name: &str) -> Task {
    Task {
        fence: Fence { id: ResourceId(Uuid::new_v4()), epoch: Epoch(1), claim_id: ClaimId(Uuid::new_v4()) },
        kind: kind_ref(kind),
        provider: kind.to_owned(),
        name: name.to_owned(),
        reaction: Reaction::Work,
        observes: false,
        reaction_name: "work".to_owned(),
        finalizer: None,
        generation: Generation(1),
        attempt: 1,
        idempotency_key: format!("{kind}/{name}/work/1.0"),
        deadline_ms: None,
        labels: BTreeMap::new(),
        spec: Bytes::from_static(b"{}"),
        status: None,
        config_override: None,
        default_config: None,
        summary: None,
        emits: vec!["status".to_owned()],
        paged_input: None,
    }
}

/// A broker on a port of its own.
pub struct Server {
    pub address: SocketAddr,
    pub shutdown: CancellationToken,
    pub ended: JoinHandle<()>,
}

pub async fn start(engine: &Arc<FakeEngine>, config: BrokerConfig) -> Server {
    start_at(engine, config, "127.0.0.1:0".parse().unwrap()).await
}

pub async fn start_at(engine: &Arc<FakeEngine>, config: BrokerConfig, address: SocketAddr) -> Server {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let served =
        converge_broker::serve(Arc::clone(engine) as Arc<dyn Dispatch>, listener, shutdown.clone(), config);
    let ended = tokio::spawn(async move { served.await.unwrap() });
    Server { address, shutdown, ended }
}
