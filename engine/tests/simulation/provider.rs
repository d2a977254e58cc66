//! Providers whose faults are a function of the seed and of what is asked, not of when or in which order: the
//! same seed meets the same faults however the tasks are scheduled.

use bytes::Bytes;
use converge_domain::KindRef;
use converge_domain::resource::Reaction;
use converge_engine::dispatch::{
    ClaimRequest, Dispatch, Recorded, StagedFrame, Task, TaskOutcome, TaskResult,
};
use converge_event_store::StagedPart;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const KINDS: [&str; 4] = ["root", "team", "account", "vpc"];

/// How long a silent worker is waited for, on the paused clock.
const SILENCE: Duration = Duration::from_secs(15);

pub struct Provider {
    seed: u64,
    /// Faults have ended.
    calm: AtomicBool,
    /// What a worker met that must not be; a test asks for it in the end.
    pub complaints: Mutex<Vec<String>>,
}

/// What goes wrong with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Transient,
    Terminal,
    Unhealthy,
    /// The output that others wait for is not in the status.
    Missing,
    Null,
    /// "Ask again later."
    InProgress,
    /// The worker takes it and is never heard of in time.
    Silent,
}

impl Provider {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self { seed, calm: AtomicBool::new(false), complaints: Mutex::default() })
    }

    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    fn draw(&self, task: &Task, what: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, what, &task.name, &task.kind.kind, format!("{:?}", task.reaction)).hash(&mut hasher);
        (&task.spec[..], task.generation.0, task.attempt).hash(&mut hasher);
        hasher.finish()
    }

    fn fault(&self, task: &Task) -> Fault {
        if self.calm.load(Ordering::SeqCst) {
            return Fault::None;
        }
        let works = task.reaction == Reaction::Work;
        let tears_down = task.reaction == Reaction::Teardown;
        match self.draw(task, "fault") % 24 {
            0 | 1 => Fault::Transient,
            2 if !tears_down => Fault::Terminal,
            3 if works => Fault::Unhealthy,
            4 if works => Fault::Missing,
            5 if works => Fault::Null,
            6 if works => Fault::InProgress,
            7 => Fault::Silent,
            _ => Fault::None,
        }
    }
}

/// The worker of one process.
pub async fn serve(dispatch: Arc<dyn Dispatch>, provider: Arc<Provider>) {
    let kinds: Vec<KindRef> = KINDS.iter().map(|kind| KindRef::new(*kind, 1)).collect();
    dispatch.report_served(kinds.iter().map(|kind| (kind.clone(), 1)).collect());
    let mut wakeups = dispatch.wakeups();
    let mut running = tokio::task::JoinSet::new();
    loop {
        let mut busy = false;
        for kind in &kinds {
            let request = ClaimRequest {
                kind: kind.clone(),
                limit: 16,
                session: dispatch.session(),
                worker: "worker".into(),
            };
            // A claim that fails is one of a process on its way out.
            let Ok(tasks) = dispatch.claim(request).await else { continue };
            busy |= !tasks.is_empty();
            for task in tasks {
                running.spawn(handle(dispatch.clone(), provider.clone(), task));
            }
        }
        if !busy {
            tokio::select! {
                // Lagging means that something was woken: look again.
                _ = wakeups.recv() => {}
                Some(handled) = running.join_next() => handled.expect("a task is handled"),
            }
        }
    }
}

async fn handle(dispatch: Arc<dyn Dispatch>, provider: Arc<Provider>, task: Task) {
    let fault = provider.fault(&task);
    tokio::time::sleep(Duration::from_millis(provider.draw(&task, "takes") % 3000)).await;
    let result = match answer(&task, fault) {
        Answer::Done(result) => result,
        Answer::Composed(children, edges) => {
            stage(&*dispatch, &task, 0, StagedPart::Child, &children).await;
            stage(&*dispatch, &task, children.len(), StagedPart::Edge, &edges).await;
            success(None, [children.len() as u64, edges.len() as u64])
        }
    };
    let silent = fault == Fault::Silent;
    if silent {
        tokio::time::sleep(SILENCE).await;
        let _ = dispatch.release(task.fence, "its worker is silent".into()).await;
    }
    let recorded = dispatch.record(TaskOutcome { fence: task.fence, kind: task.kind, result }).await;
    if silent && matches!(recorded, Ok(Recorded::Accepted)) {
        let complaint = format!("an answer for {} after its lease was accepted", task.name);
        provider.complaints.lock().expect("not poisoned").push(complaint);
    }
}

enum Answer {
    Done(TaskResult),
    Composed(Vec<Value>, Vec<Value>),
}

fn answer(task: &Task, fault: Fault) -> Answer {
    let failure = |terminal| {
        let message = format!("{:?} of {} failed", task.reaction, task.name);
        Answer::Done(TaskResult::Failure { message, terminal, status: None })
    };
    match fault {
        Fault::Transient => return failure(false),
        Fault::Terminal => return failure(true),
        _ => {}
    }
    let spec: Value = serde_json::from_slice(&task.spec).expect("a spec is JSON");
    if task.reaction == Reaction::Compose {
        let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
        return Answer::Composed(list("children"), list("edges"));
    }
    let status = match fault {
        Fault::Missing => json!({"there": true}),
        Fault::Null => json!({"id": null}),
        _ => json!({"id": output(&task.kind.kind, &task.name, &spec)}),
    };
    let mut result = success(Some(status), [0, 0]);
    if let TaskResult::Success { healthy, in_progress, requeue_after_secs, .. } = &mut result {
        *healthy = (fault == Fault::Unhealthy).then_some(false);
        *in_progress = fault == Fault::InProgress;
        *requeue_after_secs = (*in_progress).then_some(7);
    }
    Answer::Done(result)
}

/// What a resource gives to those that depend on it.
pub fn output(kind: &str, name: &str, spec: &Value) -> String {
    format!("{kind}-{name}-{}", spec["n"])
}

async fn stage(dispatch: &dyn Dispatch, task: &Task, first: usize, part: StagedPart, items: &[Value]) {
    let items = items.iter().map(Value::to_string).collect();
    let _ = dispatch.stage(StagedFrame { fence: task.fence, first_ordinal: first as i64, part, items }).await;
}

fn success(status: Option<Value>, [children, edges]: [u64; 2]) -> TaskResult {
    TaskResult::Success {
        status: status.map(|status| Bytes::from(status.to_string())),
        conditions: None,
        healthy: None,
        changed: None,
        differs: vec![],
        in_progress: false,
        requeue_after_secs: None,
        children,
        edges,
        configs: 0,
    }
}
