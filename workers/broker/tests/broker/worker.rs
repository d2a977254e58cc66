//! Workers whose handlers are closures.

use crate::engine::Server;
use converge_sdk::{Outcome, Provider, Readiness, Request, TaskError, Worker, WorkerBuilder, async_trait};
use std::future::Future;
use std::pin::Pin;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

type Handler =
    dyn Fn(Request) -> Pin<Box<dyn Future<Output = Result<Outcome, TaskError>> + Send>> + Send + Sync;

pub struct Scripted {
    kind: String,
    handler: Box<Handler>,
    pub ready: Option<watch::Receiver<Readiness>>,
}

pub fn scripted<F>(kind: &str, handler: impl Fn(Request) -> F + Send + Sync + 'static) -> Scripted
where
    F: Future<Output = Result<Outcome, TaskError>> + Send + 'static,
{
    Scripted { kind: kind.to_owned(), handler: Box::new(move |r| Box::pin(handler(r))), ready: None }
}

#[async_trait]
impl Provider for Scripted {
    fn kind(&self) -> &str {
        &self.kind
    }

    async fn work(&self, request: Request) -> Result<Outcome, TaskError> {
        (self.handler)(request).await
    }

    fn ready(&self) -> Readiness {
        self.ready.as_ref().map_or(Readiness::Ready, |ready| ready.borrow().clone())
    }

    fn ready_changes(&self) -> Option<watch::Receiver<Readiness>> {
        self.ready.clone()
    }
}

/// A running worker; stops when told.
pub struct Running {
    pub stop: CancellationToken,
    pub ended: JoinHandle<()>,
}

pub fn run(server: &Server, providers: Vec<Scripted>) -> Running {
    run_with(providers, Worker::builder().broker(server.address.to_string()).max_parallel(8))
}

pub fn run_with(providers: Vec<Scripted>, builder: WorkerBuilder) -> Running {
    let stop = CancellationToken::new();
    let worker = providers.into_iter().fold(builder, WorkerBuilder::provider).build().unwrap();
    let run = worker.run(stop.clone());
    Running { stop, ended: tokio::spawn(async move { run.await.unwrap() }) }
}
