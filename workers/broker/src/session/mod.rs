//! One worker's connection, from its first frame to its last.

mod pager;
mod reader;
mod subscribe;
mod writer;

use crate::shared::Shared;
use crate::state::Closer;
use converge_protocol::v1;
use futures::{Stream, StreamExt, stream};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Where a connection stands. Frames that a state does not expect close the stream with the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SessionState {
    /// Connected, nothing said yet. Only a `Subscribe` is expected, and soon.
    Greeting,
    /// Subscribed; the tasks that it ran before are being resumed. It gets no new ones and none of its frames
    /// are read, so that an outcome cannot overtake the resumption of its own claim.
    Resuming,
    /// Tasks flow down, progress and outcomes flow up.
    Serving,
    /// It said that it takes no new work; what it still runs may end or be given back.
    Draining,
    /// Over. What it ran is adrift until it comes back or its lease ends.
    Closed,
}

/// Down frames that may wait for the network.
const DOWN_FRAMES: usize = 32;

/// What tonic sends to the worker.
pub(crate) type DownStream = stream::BoxStream<'static, Result<v1::Down, Status>>;

/// Serves one connection in its own task; `up` ends it by ending. Returns what to send.
pub(crate) fn open<S>(shared: &Arc<Shared>, identity: String, up: S) -> DownStream
where
    S: Stream<Item = Result<v1::Up, Status>> + Send + Unpin + 'static,
{
    let (down, frames) = mpsc::channel(DOWN_FRAMES);
    let closer = Closer::default();
    tokio::spawn(serve(Arc::clone(shared), identity, up, down, closer.clone()));
    // The stream ends the moment it is closed, whatever still waits in `frames`: a worker that reads nothing
    // must not be able to keep its connection by not reading.
    let ended = closer.clone();
    let farewell =
        stream::once(async move { closer.status().map(Err) }).filter_map(|status| async move { status });
    ReceiverStream::new(frames)
        .map(Ok)
        .take_until(async move { ended.closed().await })
        .chain(farewell)
        .boxed()
}

async fn serve<S>(
    shared: Arc<Shared>,
    identity: String,
    mut up: S,
    down: mpsc::Sender<v1::Down>,
    closer: Closer,
) where
    S: Stream<Item = Result<v1::Up, Status>> + Send + Unpin + 'static,
{
    let mut state = SessionState::Greeting;
    let ended = tokio::select! {
        () = closer.closed() => Ok(()),
        () = shared.shutdown.cancelled() => {
            Err(Status::unavailable("the broker is stopping; reconnect, nothing is lost"))
        }
        ended = converse(&shared, &identity, &mut up, down, &closer, &mut state) => ended,
    };
    let last = std::mem::replace(&mut state, SessionState::Closed);
    match &ended {
        Ok(()) => tracing::info!(worker = identity, state = ?last, "a worker left"),
        Err(status) => tracing::warn!(worker = identity, state = ?last, %status, "a worker's stream ended"),
    }
    closer.close(ended.err().unwrap_or_else(|| Status::ok("")));
}

/// The conversation itself. Dropped as a whole when the stream is closed; the guard tells the memory, on every path.
async fn converse<S>(
    shared: &Arc<Shared>,
    identity: &str,
    up: &mut S,
    down: mpsc::Sender<v1::Down>,
    closer: &Closer,
    state: &mut SessionState,
) -> Result<(), Status>
where
    S: Stream<Item = Result<v1::Up, Status>> + Send + Unpin,
{
    let subscription = subscribe::greet(shared, up).await?;
    *state = SessionState::Resuming;
    let (orders, queue) = mpsc::channel(subscribe::orders_max(subscription.slots));
    let worker = subscribe::join(shared, identity, &subscription, orders, closer, &down).await?;
    let _leaving = Leaving { shared: Arc::clone(shared), worker };
    let writer = tokio::spawn(writer::run(Arc::clone(shared), queue, down));
    subscribe::resume(shared, worker, subscription.running).await;
    *state = SessionState::Serving;
    let ended = reader::run(shared, worker, up, subscription.slots, state).await;
    writer.abort();
    ended
}

/// Tells the memory that the worker's stream is gone.
struct Leaving {
    shared: Arc<Shared>,
    worker: crate::state::WorkerId,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.shared.change(|state| state.lost(self.worker, Instant::now()));
    }
}
