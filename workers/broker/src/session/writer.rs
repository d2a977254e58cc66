//! The only one who decides the order of frames down to a worker: a task never overtakes the config it needs.

use super::pager;
use crate::shared::Shared;
use crate::state::Order;
use crate::wire;
use converge_domain::KindRef;
use converge_engine::dispatch::{ProviderConfigSnapshot, Task};
use converge_protocol::v1::{self, down::Frame};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The default configs this worker has, by kind version; present and None: told that there is none.
type Seen = HashMap<KindRef, Option<ProviderConfigSnapshot>>;

/// Runs until the queue or the stream ends.
pub(super) async fn run(
    shared: Arc<Shared>,
    mut orders: mpsc::Receiver<Order>,
    down: mpsc::Sender<v1::Down>,
) {
    let mut seen = Seen::new();
    while let Some(order) = orders.recv().await {
        let sent = match order {
            Order::Task { task, claimed_at, pages } => {
                let paged = pages.zip(task.paged_input);
                let fence = task.fence;
                let sent = send_task(&down, &mut seen, *task, claimed_at).await;
                if let Some((pages, part)) = paged {
                    tokio::spawn(pager::run(Arc::clone(&shared), fence, part, pages, down.clone()));
                }
                sent
            }
            Order::Cancel { fence, reason } => {
                let fence = Some(wire::wire_fence(&fence));
                send(&down, Frame::Cancel(v1::Cancel { fence, reason })).await
            }
            Order::Received { fence, accepted } => {
                let fence = Some(wire::wire_fence(&fence));
                send(&down, Frame::Received(v1::Received { fence, accepted })).await
            }
            Order::Config(kind) => {
                let config = shared.dispatch.default_config(&kind);
                send_config(&down, &mut seen, kind, config).await
            }
        };
        if sent.is_none() {
            return;
        }
    }
}

/// None: the stream is gone.
async fn send(down: &mpsc::Sender<v1::Down>, frame: Frame) -> Option<()> {
    down.send(v1::Down { frame: Some(frame) }).await.ok()
}

async fn send_task(
    down: &mpsc::Sender<v1::Down>,
    seen: &mut Seen,
    task: Task,
    claimed_at: Instant,
) -> Option<()> {
    // Only a newer version counts: a change that was broadcast after this task was decided must not be undone.
    if let Some(decided) = &task.default_config {
        let known = seen.get(&task.kind).and_then(Option::as_ref);
        if known.is_none_or(|known| known.name != decided.name || known.version < decided.version) {
            send_config(down, seen, task.kind.clone(), Some(decided.clone())).await?;
        }
    }
    let left = task.deadline_ms.map_or(0, |ms| {
        let left = Duration::from_millis(ms).saturating_sub(claimed_at.elapsed());
        // 0 would mean "no deadline".
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1)
    });
    send(down, Frame::Task(wire::task(task, left))).await
}

async fn send_config(
    down: &mpsc::Sender<v1::Down>,
    seen: &mut Seen,
    kind: KindRef,
    config: Option<ProviderConfigSnapshot>,
) -> Option<()> {
    if seen.get(&kind) == Some(&config) {
        return Some(());
    }
    let frame = v1::Config {
        kind: kind.kind.clone(),
        kind_version: u32::from(kind.kind_version),
        config: config.clone().map(wire::provider_config),
    };
    send(down, Frame::Config(frame)).await?;
    seen.insert(kind, config);
    Some(())
}
