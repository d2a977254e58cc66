//! The start of a conversation: what the worker serves, and the tasks that outlived its last stream.

use crate::backoff::retry;
use crate::shared::Shared;
use crate::state::{Closer, Offer, Order, WorkerId};
use crate::wire;
use converge_domain::KindRef;
use converge_engine::dispatch::Fence;
use converge_protocol::v1;
use futures::{Stream, StreamExt, stream};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tonic::Status;

/// Tasks that are resumed at the same time.
const RESUMES_AT_ONCE: usize = 32;
/// Most providers one worker may offer.
const OFFERS_MAX: usize = 4096;

/// A checked `Subscribe`.
pub(super) struct Subscription {
    pub(super) offers: Vec<Offer>,
    pub(super) slots: usize,
    pub(super) running: Vec<Resumed>,
}

/// A task that its worker still has.
pub(super) struct Resumed {
    fence: Fence,
    kind: KindRef,
    left: Option<Duration>,
}

/// How many orders may wait for the writer: a task and a cancel per slot, and room for configs and answers.
pub(super) fn orders_max(slots: usize) -> usize {
    3 * slots + 4096
}

/// Waits for the first frame and checks it.
pub(super) async fn greet<S>(shared: &Shared, up: &mut S) -> Result<Subscription, Status>
where
    S: Stream<Item = Result<v1::Up, Status>> + Unpin,
{
    let first = timeout(shared.config.subscribe_timeout, up.next())
        .await
        .map_err(|_| Status::deadline_exceeded("no Subscribe frame came in time"))?
        .ok_or_else(|| Status::invalid_argument("the stream ended before its Subscribe frame"))??;
    let Some(v1::up::Frame::Subscribe(subscribe)) = first.frame else {
        return Err(Status::failed_precondition("the first frame must be a Subscribe"));
    };
    check(shared, &subscribe)
}

fn check(shared: &Shared, subscribe: &v1::Subscribe) -> Result<Subscription, Status> {
    let invalid = |error: wire::Malformed| Status::invalid_argument(error.to_string());
    if subscribe.revision == 0 || subscribe.revision > converge_protocol::REVISION {
        return Err(Status::failed_precondition(format!(
            "the worker speaks protocol revision {}, this broker {}",
            subscribe.revision,
            converge_protocol::REVISION
        )));
    }
    if subscribe.serves.is_empty() || subscribe.serves.len() > OFFERS_MAX {
        return Err(Status::invalid_argument(format!("a worker offers 1 to {OFFERS_MAX} providers")));
    }
    if subscribe.max_inflight == 0 {
        return Err(Status::invalid_argument("max_inflight must be at least 1"));
    }
    let slots = usize::try_from(subscribe.max_inflight).unwrap_or(usize::MAX).min(shared.config.slots_max);
    // Buffered outcomes are listed too, so a worker that was away may name more than its slots; not without end.
    if subscribe.running.len() > 4 * shared.config.slots_max {
        return Err(Status::invalid_argument("the worker resumes more tasks than it can have"));
    }
    let resumed = |running: &v1::Running| {
        Ok(Resumed {
            fence: wire::fence(running.fence.as_ref())?,
            kind: wire::kind(&running.kind, running.kind_version)?,
            left: (running.deadline_ms > 0).then(|| Duration::from_millis(running.deadline_ms)),
        })
    };
    Ok(Subscription {
        offers: wire::offers(&subscribe.serves).map_err(invalid)?,
        slots,
        running: subscribe.running.iter().map(resumed).collect::<Result<_, _>>().map_err(invalid)?,
    })
}

/// Accepts the worker. `Subscribed` is the first frame down; joining queues its default configs behind it.
pub(super) async fn join(
    shared: &Arc<Shared>,
    identity: &str,
    subscription: &Subscription,
    orders: mpsc::Sender<Order>,
    closer: &Closer,
    down: &mpsc::Sender<v1::Down>,
) -> Result<WorkerId, Status> {
    let heartbeat_ms = u32::try_from(shared.config.heartbeat().as_millis()).unwrap_or(u32::MAX).max(1);
    let subscribed = v1::Subscribed { session: shared.dispatch.session().to_string(), heartbeat_ms };
    down.send(v1::Down { frame: Some(v1::down::Frame::Subscribed(subscribed)) })
        .await
        .map_err(|_| Status::cancelled("the worker left"))?;
    let (slots, offers) = (subscription.slots, subscription.offers.clone());
    // Kinds taught since the last wakeup are known to the engine and must be matched now.
    let catalog = shared.dispatch.served_kinds();
    let id = shared.change(|state| {
        state.learn_kinds(catalog);
        state.join(identity.to_owned(), slots, offers, orders, closer.clone())
    });
    tracing::info!(worker = identity, slots, offers = subscription.offers.len(), "a worker subscribed");
    Ok(id)
}

/// Moves the claims of the worker's old tasks here, then lets it have new ones. A dead fence is cancelled.
pub(super) async fn resume(shared: &Arc<Shared>, worker: WorkerId, running: Vec<Resumed>) {
    stream::iter(running)
        .for_each_concurrent(RESUMES_AT_ONCE, |resumed| async move {
            let fence = resumed.fence;
            match retry(&shared.config, "resume", || shared.dispatch.resume(fence)).await {
                Ok(true) => {
                    let (kind, left) = (resumed.kind, resumed.left);
                    shared.change(|state| state.adopt(worker, fence, kind, left, Instant::now()));
                }
                Ok(false) => shared.change(|state| state.refuse(worker, fence)),
                Err(error) => {
                    // Not known to be dead. Its outcome, if it comes, is judged by the store.
                    tracing::warn!(?fence, %error, "a task could not be resumed");
                }
            }
        })
        .await;
    shared.change(|state| state.joined(worker));
}
