//! Starting and holding the loops of one process.

use crate::compose::{Outlines, Room};
use crate::dispatch::Fence;
use crate::dispatching::Dispatcher;
use crate::evaluate::Evaluator;
use crate::gateway::EngineGateway;
use crate::membership::{self, Membership};
use crate::registry::Registry;
use crate::served::Served;
use crate::{timers, wake};
use converge_domain::{Address, ResourceId, resource::ResourceCommand};
use converge_domain::{AggregateId, AggregateType, AnyCommand, CommandId, SessionId, Timestamp};
use converge_event_store::clock::Clock;
use converge_event_store::{CommandGroup, Committed, ExecuteError, Log, Metadata, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// What an engine is made of.
pub struct EngineParts {
    pub store: Arc<dyn Store>,
    pub log: Log,
    pub config: EngineConfig,
}

/// Knobs of one process; the defaults suit production.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// `control`, `broker` or `all`.
    pub role: String,
    pub host: String,
    pub broker_address: String,
    /// How often the member row is renewed.
    pub beat: Duration,
    /// A member unseen for this long is dead, and its claims are released.
    pub lease: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            role: "all".to_owned(),
            host: "localhost".to_owned(),
            broker_address: String::new(),
            beat: Duration::from_secs(2),
            lease: Duration::from_secs(15),
        }
    }
}

/// What every part of the engine holds.
pub(crate) struct Core {
    pub store: Arc<dyn Store>,
    pub log: Log,
    pub clock: Arc<dyn Clock>,
    pub registry: Arc<Registry>,
    pub session: SessionId,
    pub config: EngineConfig,
    pub served: Served,
    pub outlines: Outlines,
    pub room: Room,
    /// Somebody waits for a name, as far as this process has seen: only then is it worth asking who, whenever one is taken or freed.
    names_awaited: AtomicBool,
}

/// A running engine.
pub struct Engine {
    core: Arc<Core>,
    dispatcher: Arc<Dispatcher>,
    gateway: Arc<EngineGateway>,
    membership: Membership,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Engine {
    /// Loads the registry, joins the cluster, wakes what is not settled, and runs until [`Engine::shutdown`].
    ///
    /// # Errors
    /// When the store cannot be read at start.
    pub async fn start(parts: EngineParts) -> Result<Self, StoreError> {
        let EngineParts { store, log, config } = parts;
        let tracker = TaskTracker::new();
        let stop = CancellationToken::new();
        // The follower starts before anything is loaded: what commits in between is seen twice, never missed.
        let start = store.log_head().await?.position;
        let registry = Arc::new(Registry::load(store.as_ref()).await?);
        let session = SessionId(Uuid::now_v7());
        let core = Arc::new(Core {
            clock: log.clock(),
            store,
            log,
            registry,
            session,
            config,
            served: Served::default(),
            outlines: Outlines::default(),
            room: Room::default(),
            names_awaited: AtomicBool::new(false),
        });

        let membership = membership::join(&core, &tracker, stop.clone()).await?;
        let evaluator = Evaluator::start(core.clone(), &tracker, stop.clone());
        let dispatcher = Arc::new(Dispatcher::new(core.clone(), evaluator.clone()));
        let gateway = Arc::new(EngineGateway::new(core.clone()));
        let timers =
            timers::start(core.clone(), evaluator.clone(), dispatcher.clone(), &tracker, stop.clone());
        wake::start(
            wake::Wakers {
                core: core.clone(),
                evaluator: evaluator.clone(),
                dispatcher: dispatcher.clone(),
                timers,
            },
            start,
            &tracker,
            stop.clone(),
        );
        if core.runs_control() {
            evaluator.recover(&tracker, stop.clone());
        }
        tracker.close();
        Ok(Self { core, dispatcher, gateway, membership, tracker, stop })
    }

    /// The engine as brokers see it.
    pub fn dispatch(&self) -> Arc<dyn crate::dispatch::Dispatch> {
        self.dispatcher.clone()
    }

    /// The engine as people see it.
    pub fn gateway(&self) -> Arc<dyn crate::gateway_api::Gateway> {
        self.gateway.clone()
    }

    /// The live kinds and provider configs.
    pub fn registry(&self) -> Arc<Registry> {
        self.core.registry.clone()
    }

    /// Stops the loops and leaves the cluster. Claims still out stay claimed: their workers resume them at
    /// another broker, or the lease ends them.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tracker.wait().await;
        self.membership.leave();
    }
}

impl Core {
    /// Whether this process evaluates, composes and expires.
    pub fn runs_control(&self) -> bool {
        self.config.role != "broker"
    }

    /// From now on this process asks who waits for a name.
    pub fn await_names(&self) {
        self.names_awaited.store(true, Ordering::SeqCst);
    }

    /// Whether anybody may wait for a name.
    pub fn names_are_awaited(&self) -> bool {
        self.names_awaited.load(Ordering::SeqCst)
    }

    /// The database's time, without asking it.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// One command to one resource, by the engine itself.
    pub async fn execute(&self, id: ResourceId, command: ResourceCommand) -> Result<Committed, ExecuteError> {
        self.log.execute(self.group(id, command)).await
    }

    /// Ends a claim without an outcome; under a dead fence it changes nothing.
    pub async fn release_claim(&self, fence: Fence, reason: &str) -> Result<Committed, ExecuteError> {
        let command = ResourceCommand::ReleaseClaim {
            epoch: fence.epoch,
            claim_id: fence.claim_id,
            reason: reason.to_owned(),
            at: self.now(),
        };
        self.execute(fence.id, command).await
    }

    /// A group of one command to one resource.
    pub fn group(&self, id: ResourceId, command: ResourceCommand) -> CommandGroup {
        CommandGroup {
            command_id: None::<CommandId>,
            metadata: self.metadata(command.name()),
            steps: vec![(resource_address(id), AnyCommand::Resource(command))],
            ..CommandGroup::default()
        }
    }

    /// Of what the engine does by itself.
    pub fn metadata(&self, cause: &str) -> Arc<Metadata> {
        Arc::new(Metadata::from([
            ("actor".to_owned(), "converge".to_owned()),
            ("cause".to_owned(), cause.to_owned()),
        ]))
    }
}

/// Where a resource's commands go.
pub(crate) fn resource_address(id: ResourceId) -> Address {
    Address { aggregate_type: AggregateType::Resource, id: AggregateId(id.0) }
}
