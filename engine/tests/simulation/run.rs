//! A run: processes, their users and their faults, over one store and one paused clock.

use super::action::{Action, Operation, ROOTS};
use super::desired::{TEAM, Tree};
use super::mortal::Life;
use super::process::Process;
use super::provider::Provider;
use crate::world::{composer_kind, leaf_kind};
use converge_domain::resource::ResourceState;
use converge_domain::{AggregateType, AnyState, Position, ResourceRef};
use converge_engine::gateway_api::GatewayError;
use converge_event_store::{LogConfig, MemoryStore, Store, StoredEvent};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Deaths that one request or start may meet; more are a fault of the harness.
const TRIES_MAX: u32 = 20;
/// A look at the log every so often; that many looks without news are quiet, and that many looks are enough.
const LOOK: Duration = Duration::from_secs(20);
const QUIET_LOOKS: u32 = 4;
const LOOKS_MAX: u32 = 500;

pub struct Run {
    pub store: MemoryStore,
    pub provider: Arc<Provider>,
    pub processes: [Option<Process>; 2],
    /// What users asked for and were not refused, by root.
    pub desired: BTreeMap<usize, Tree>,
    pub log: LogConfig,
    seed: u64,
    births: u64,
}

impl Run {
    pub async fn new(seed: u64) -> Self {
        let mut run = Self {
            store: MemoryStore::new(),
            provider: Provider::new(seed),
            processes: [None, None],
            desired: BTreeMap::new(),
            log: LogConfig::default(),
            seed,
            births: 0,
        };
        let kinds = [composer_kind("root"), composer_kind("team"), leaf_kind("account"), leaf_kind("vpc")];
        run.apply(0, &kinds).await.expect("the kinds are accepted");
        run
    }

    /// The process in that slot if it lives; else the first, started again if need be.
    pub async fn process(&mut self, slot: usize) -> &Process {
        let lives = |process: &Option<Process>| process.as_ref().is_some_and(|p| !p.life.is_over());
        let slot = if lives(&self.processes[slot]) { slot } else { 0 };
        if !lives(&self.processes[slot]) {
            self.start(slot).await;
        }
        self.processes[slot].as_ref().expect("it was started")
    }

    pub async fn start(&mut self, slot: usize) {
        self.births += 1;
        let life = Life::new(self.seed.wrapping_add(self.births));
        let store = Arc::new(self.store.clone());
        let started = Process::start(store, life, self.provider.clone(), self.log.clone()).await;
        self.processes[slot] = Some(started.expect("nothing ends a new process"));
    }

    async fn apply(&mut self, slot: usize, documents: &[Value]) -> Result<(), GatewayError> {
        for _ in 0..TRIES_MAX {
            if let Some(answer) = self.process(slot).await.apply(documents).await {
                return answer;
            }
        }
        panic!("an apply met {TRIES_MAX} deaths");
    }

    async fn delete(&mut self, target: &ResourceRef) -> Result<(), GatewayError> {
        for _ in 0..TRIES_MAX {
            if let Some(answer) = self.process(1).await.delete(target.clone()).await {
                return answer;
            }
        }
        panic!("a delete met {TRIES_MAX} deaths");
    }

    pub async fn declare(&mut self, root: usize, tree: Tree) -> Result<(), String> {
        let document = tree.document(ROOTS[root]);
        // Either process takes it.
        match self.apply(root, &[document]).await {
            Ok(()) => {
                self.desired.insert(root, tree);
                Ok(())
            }
            Err(GatewayError::Conflict(_)) if self.is_going(ROOTS[root]).await => Ok(()),
            Err(error) => Err(format!("declaring {}: {error}", ROOTS[root])),
        }
    }

    pub async fn delete_root(&mut self, root: usize) -> Result<(), String> {
        match self.delete(&ResourceRef::new("root", ROOTS[root])).await {
            Ok(()) | Err(GatewayError::NotFound(_)) => {
                self.desired.remove(&root);
                Ok(())
            }
            Err(error) => Err(format!("deleting {}: {error}", ROOTS[root])),
        }
    }

    async fn operate(&mut self, target: ResourceRef, what: Operation) -> Result<(), String> {
        for _ in 0..TRIES_MAX {
            match self.process(1).await.act(target.clone(), what).await {
                // Not there, going away, nothing to look at, nothing stuck: refused for a reason.
                Some(Ok(()) | Err(GatewayError::NotFound(_) | GatewayError::Conflict(_))) => return Ok(()),
                Some(Err(error)) => return Err(format!("{what:?} of {target}: {error}")),
                None => {}
            }
        }
        panic!("an operator met {TRIES_MAX} deaths");
    }

    async fn is_going(&self, name: &str) -> bool {
        // It may be gone by now: then the refusal was about what has just ended.
        let root = ResourceRef::new("root", name);
        self.states()
            .await
            .iter()
            .find(|state| state.id().reference() == root)
            .is_none_or(|state| state.deletion.is_some())
    }

    /// Does one thing.
    pub async fn act(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Declare { root, tree } => self.declare(*root, tree.clone()).await?,
            Action::ApplyAgain { root } => {
                if let Some(tree) = self.desired.get(root).cloned() {
                    self.declare(*root, tree).await?;
                }
            }
            Action::DeleteRoot { root } => self.delete_root(*root).await?,
            Action::DeleteChild { root, in_team, place } => {
                match self.delete(&child_name(*root, *in_team, *place)).await {
                    Ok(()) | Err(GatewayError::NotFound(_) | GatewayError::Conflict(_)) => {}
                    Err(error) => return Err(format!("deleting a child: {error}")),
                }
            }
            Action::Operate { root, in_team, place, what } => {
                let target = match place {
                    Some(place) => child_name(*root, *in_team, *place),
                    None => ResourceRef::new("root", ROOTS[*root]),
                };
                self.operate(target, *what).await?;
            }
            Action::Wait { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Action::Crash { process, appends, moment } => {
                self.process(*process).await.life.end_at(*appends, *moment);
            }
            Action::Join => {
                if self.processes[1].as_ref().is_none_or(|process| process.life.is_over()) {
                    self.start(1).await;
                }
            }
            Action::Leave => self.processes[1] = None,
        }
        self.nothing_is_forgotten().await
    }

    /// Faults end: no process dies any more, and the first one runs.
    pub async fn calm_down(&mut self) {
        self.provider.calm_down();
        for process in self.processes.iter().flatten() {
            process.life.end_at(0, super::mortal::Moment::After);
        }
        self.process(0).await;
        let set_aside = self.states().await.into_iter().filter(|state| state.quarantine.is_some());
        for name in set_aside.map(|state| state.id().reference()).collect::<Vec<_>>() {
            self.operate(name, Operation::Release).await.expect("a release is never refused for good");
        }
    }

    /// Waits until the log is quiet.
    pub async fn settle(&mut self) -> Result<(), String> {
        let (mut last, mut quiet) = (self.head().await, 0);
        for _ in 0..LOOKS_MAX {
            self.process(0).await;
            tokio::time::sleep(LOOK).await;
            let head = self.head().await;
            quiet = if head == last { quiet + 1 } else { 0 };
            last = head;
            if quiet == QUIET_LOOKS {
                return Ok(());
            }
        }
        Err("it never gets quiet".to_owned())
    }

    pub async fn head(&self) -> Position {
        self.store.log_head().await.expect("memory answers").position
    }

    pub async fn events(&self) -> Vec<StoredEvent> {
        self.store.read(Position(0), 1_000_000).await.expect("memory answers")
    }

    /// The live resources.
    pub async fn states(&self) -> Vec<Arc<ResourceState>> {
        let heads = self.store.heads_of_type(AggregateType::Resource).await.expect("memory answers");
        let states = heads.into_iter().filter_map(|head| match head.state {
            AnyState::Resource(state) if state.exists() => Some(state),
            _ => None,
        });
        states.collect()
    }

    /// How many processes were started so far.
    pub const fn births(&self) -> u64 {
        self.births
    }

    /// Whatever is eligible is queued, whoever lives and whatever was cut short.
    async fn nothing_is_forgotten(&self) -> Result<(), String> {
        let now = self.store.now().await.expect("memory answers");
        for state in self.states().await {
            let eligible = state.due().is_some() && state.retry_at.is_none_or(|at| at <= now);
            if !eligible || state.due_since > now {
                continue;
            }
            let queue = self.store.queue(&state.task_kind_ref(), None, 10_000).await.expect("memory answers");
            if !queue.iter().any(|row| row.id == state.id().id) {
                return Err(format!("{} is eligible and not queued", state.id().reference()));
            }
        }
        Ok(())
    }
}

fn child_name(root: usize, in_team: bool, place: usize) -> ResourceRef {
    let above = if in_team { format!("{}-e", ROOTS[root]) } else { ROOTS[root].to_owned() };
    let (kind, short) =
        [("account", "a"), ("account", "b"), ("vpc", "c"), ("vpc", "d"), ("team", "e")][place.min(TEAM)];
    ResourceRef::new(kind, format!("{above}-{short}"))
}
