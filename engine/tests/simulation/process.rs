//! One process of the product over the shared store, with a worker of its own.

use super::action::Operation;
use super::mortal::{Life, MortalStore};
use super::provider::{Provider, serve};
use converge_domain::ResourceRef;
use converge_domain::document::{self, Document};
use converge_engine::dispatch::Dispatch;
use converge_engine::gateway_api::{
    ActRequest, Action, DeleteRequest, Gateway, GatewayError, RequestContext,
};
use converge_engine::{Engine, EngineConfig, EngineParts};
use converge_event_store::{Log, LogConfig, Store};
use converge_projections::inline::StateProjector;
use serde_json::Value;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A running process. It ends by its [`Life`]; what it was doing then stays undone.
pub struct Process {
    pub life: Arc<Life>,
    pub gateway: Arc<dyn Gateway>,
    _engine: Engine,
    _log: Log,
    worker: JoinHandle<()>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.life.kill();
        self.worker.abort();
    }
}

impl Process {
    /// None when it died while it started.
    pub async fn start(
        store: Arc<dyn Store>,
        life: Arc<Life>,
        provider: Arc<Provider>,
        config: LogConfig,
    ) -> Option<Self> {
        let store: Arc<dyn Store> = Arc::new(MortalStore { inner: store, life: life.clone() });
        let started = async {
            let log =
                Log::start(store.clone(), Arc::new(StateProjector), config).await.expect("a log starts");
            let parts = EngineParts { store, log: log.clone(), config: EngineConfig::default() };
            (Engine::start(parts).await.expect("an engine starts"), log)
        };
        let (engine, log) = tokio::select! {
            started = started => started,
            () = life.over() => return None,
        };
        let dispatch: Arc<dyn Dispatch> = engine.dispatch();
        let worker = tokio::spawn(serve(dispatch, provider));
        Some(Self { life, gateway: engine.gateway(), _engine: engine, _log: log, worker })
    }

    /// None: the process died before it answered.
    pub async fn apply(&self, documents: &[Value]) -> Option<Result<(), GatewayError>> {
        let documents: Vec<Document> =
            documents.iter().map(|value| document::parse(value.clone(), None).expect("a document")).collect();
        let applied = self.gateway.apply(documents, context());
        tokio::select! {
            answer = applied => Some(answer.map(|_| ())),
            () = self.life.over() => None,
        }
    }

    /// None: the process died before it answered.
    pub async fn delete(&self, target: ResourceRef) -> Option<Result<(), GatewayError>> {
        let request = DeleteRequest { targets: vec![target], cascade: false };
        tokio::select! {
            answer = self.gateway.delete(request, context()) => Some(answer.map(|_| ())),
            () = self.life.over() => None,
        }
    }
}

impl Process {
    /// None: the process died before it answered.
    pub async fn act(&self, target: ResourceRef, what: Operation) -> Option<Result<(), GatewayError>> {
        let action = match what {
            Operation::Quarantine => Action::Quarantine,
            Operation::Release => Action::Release,
            Operation::Resync => Action::Resync,
            Operation::Abandon => Action::Abandon,
        };
        let request = ActRequest { targets: vec![target], action, reason: "by chance".into() };
        tokio::select! {
            answer = self.gateway.act(request, context()) => Some(answer.map(|_| ())),
            () = self.life.over() => None,
        }
    }
}

fn context() -> RequestContext {
    RequestContext { actor: "simulation".into(), ..RequestContext::default() }
}
