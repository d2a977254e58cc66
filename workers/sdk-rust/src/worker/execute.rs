//! Runs one handler so that nothing it does can hurt the worker.

use super::{Core, PageTaken};
use crate::error::TaskError;
use crate::input::Input;
use crate::outcome::Outcome;
use crate::provider::Provider;
use crate::request::Request;
use converge_protocol::v1;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Pages that may wait for a handler; more than any broker sends unasked.
const PAGES_WAITING: usize = 64;
/// How long a cancelled handler may clean up before it is dropped.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// Starts a task that the broker pushed.
pub(crate) fn start(core: &Arc<Core>, task: v1::Task) {
    let Some(fence) = task.fence.clone() else {
        tracing::warn!(kind = task.kind, name = task.name, "a task without a fence was ignored");
        return;
    };
    let cancelled = CancellationToken::new();
    let (pages, input) = if task.paged_input {
        let (pages, queue) = mpsc::channel(PAGES_WAITING);
        (Some(pages), Input::streamed(queue, PageTaken::new(Arc::clone(core), fence.clone())))
    } else {
        (None, Input::default())
    };
    if !core.jobs.start(&task, fence.clone(), cancelled.clone(), pages) {
        return;
    }
    let provider = core.provider_for(&task.kind, task.kind_version, &task.provider);
    let default_config = core.defaults.get(&task.kind, task.kind_version);
    let (kind, version, name) = (task.kind.clone(), task.kind_version, task.name.clone());
    let request = Request::from_wire(task, default_config, input, cancelled.clone());
    let core = Arc::clone(core);
    tokio::spawn(async move {
        let result = match (provider, request) {
            (Some(provider), Ok(request)) => run(provider, request, &cancelled).await,
            (None, _) => Err(TaskError::transient(format!("this worker does not serve {kind}/v{version}"))),
            (_, Err(error)) => Err(error),
        };
        if let Err(error) = &result {
            tracing::warn!(kind, name, %error, terminal = error.is_terminal(), "a task failed");
        }
        core.jobs.finish(&fence.claim_id, super::deliver::fitting(result));
    });
}

/// The handler in a task of its own: a panic ends that task and becomes its answer.
async fn run(
    provider: Arc<dyn Provider>,
    request: Request,
    cancelled: &CancellationToken,
) -> Result<Outcome, TaskError> {
    let mut handler = tokio::spawn(async move { provider.work(request).await });
    let overdue = async {
        cancelled.cancelled().await;
        tokio::time::sleep(CANCEL_GRACE).await;
    };
    let ended = tokio::select! {
        ended = &mut handler => ended,
        () = overdue => {
            handler.abort();
            handler.await
        }
    };
    ended.unwrap_or_else(|error| {
        Err(match error.try_into_panic() {
            Ok(panic) => TaskError::transient(format!("the handler panicked: {}", panic_text(&*panic))),
            Err(_) => TaskError::transient("the handler was cancelled"),
        })
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is not text")
}
