//! What a worker says once it is subscribed.

use super::SessionState;
use crate::composition::{self, Composition, Frame};
use crate::shared::Shared;
use crate::state::{Taken, WorkerId};
use crate::wire::{self, Counts};
use converge_engine::dispatch::{Fence, TaskOutcome};
use converge_protocol::v1::{self, up};
use futures::{Stream, StreamExt};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tonic::Status;

/// Outcomes beyond its slots that a worker may have in recording at once; a worker that sends more waits.
const SPARE_RECORDINGS: usize = 64;
/// A frame's payload may exceed the stated limit by this much before it is refused: item headers are not counted.
const FRAME_SLACK_BYTES: usize = 64 * 1024;

struct Reader<'a> {
    shared: &'a Arc<Shared>,
    worker: WorkerId,
    recordings: Arc<Semaphore>,
    compositions: HashMap<Fence, Composition>,
}

/// Reads until the stream ends or something unforgivable comes.
pub(super) async fn run<S>(
    shared: &Arc<Shared>,
    worker: WorkerId,
    up: &mut S,
    slots: usize,
    state: &mut SessionState,
) -> Result<(), Status>
where
    S: Stream<Item = Result<v1::Up, Status>> + Unpin,
{
    let recordings = Arc::new(Semaphore::new(slots + SPARE_RECORDINGS));
    let mut reader = Reader { shared, worker, recordings, compositions: HashMap::new() };
    while let Some(frame) = up.next().await {
        match frame?.frame {
            Some(up::Frame::Subscribe(_)) => {
                return Err(Status::failed_precondition("a stream subscribes once"));
            }
            Some(up::Frame::Drain(drain)) => {
                *state = SessionState::Draining;
                reader.drain(&drain);
            }
            Some(up::Frame::Readiness(readiness)) => reader.readiness(&readiness)?,
            Some(up::Frame::Heartbeat(heartbeat)) => reader.heartbeat(&heartbeat),
            Some(up::Frame::Chunk(chunk)) => reader.chunk(chunk).await?,
            Some(up::Frame::Outcome(outcome)) => reader.outcome(outcome).await,
            Some(up::Frame::InputTaken(taken)) => reader.input_taken(&taken),
            // A newer worker's frame: readers ignore what they do not know.
            None => tracing::debug!("a frame of an unknown kind was ignored"),
        }
    }
    Ok(())
}

impl Reader<'_> {
    fn fences(frames: &[v1::Fence]) -> Vec<Fence> {
        frames.iter().filter_map(|frame| readable(wire::fence(Some(frame)))).collect()
    }

    fn drain(&self, drain: &v1::Drain) {
        let released = Self::fences(&drain.released);
        self.shared.change(|state| state.drain(self.worker, &released));
    }

    fn heartbeat(&self, heartbeat: &v1::Heartbeat) {
        let progressing = Self::fences(&heartbeat.progressing);
        self.shared.change(|state| state.attest(self.worker, &progressing, Instant::now()));
    }

    fn readiness(&self, readiness: &v1::Readiness) -> Result<(), Status> {
        let offers = wire::offers(&readiness.serves)
            .map_err(|error| Status::invalid_argument(format!("a Readiness frame: {error}")))?;
        self.shared.change(|state| state.rematch(self.worker, Some(offers)));
        Ok(())
    }

    fn input_taken(&self, taken: &v1::InputTaken) {
        if let Some(fence) = readable(wire::fence(taken.fence.as_ref())) {
            self.shared.change(|state| state.input_taken(self.worker, fence));
        }
    }

    async fn chunk(&mut self, chunk: v1::OutcomeChunk) -> Result<(), Status> {
        let bytes: usize = chunk.items.iter().map(bytes::Bytes::len).sum();
        if bytes > converge_protocol::FRAME_BYTES_MAX + FRAME_SLACK_BYTES {
            return Err(Status::invalid_argument(format!(
                "a frame of a composition holds {bytes} bytes; the limit is {}",
                converge_protocol::FRAME_BYTES_MAX
            )));
        }
        let Some(fence) = readable(wire::fence(chunk.fence.as_ref())) else { return Ok(()) };
        if !self.shared.state().is_held_by(self.worker, &fence) {
            tracing::warn!(?fence, "a composition for a claim that this worker does not hold was ignored");
            self.compositions.remove(&fence);
            return Ok(());
        }
        if chunk.index == 0 {
            let state = self.shared.state();
            self.compositions.retain(|fence, _| state.is_held_by(self.worker, fence));
            drop(state);
            // A redelivery starts again at frame 0, on the same ordinals.
            self.compositions.insert(fence, Composition::start(self.shared, fence));
        }
        let composition =
            self.compositions.entry(fence).or_insert_with(|| Composition::start(self.shared, fence));
        composition.frame(Frame { index: chunk.index, part: chunk.part, items: chunk.items }).await;
        Ok(())
    }

    async fn outcome(&mut self, outcome: v1::Outcome) {
        let Some(fence) = readable(wire::fence(outcome.fence.as_ref())) else { return };
        let Some(kind) = readable(wire::kind(&outcome.kind, outcome.kind_version)) else { return };
        let composition = self.compositions.remove(&fence);
        let Some((mut result, sent)) = readable(wire::result(outcome.result)) else { return };
        // The only wait of this function comes before the entry changes, so a session that is dropped here leaves the
        // task running and adrift, never in a recording that nobody does.
        let Ok(permit) = Arc::clone(&self.recordings).acquire_owned().await else { return };
        let taken = self.shared.change(|state| state.take(self.worker, fence, kind, Instant::now()));
        let Taken::Record(kind) = taken else { return };
        let shared = Arc::clone(self.shared);
        self.shared.obligations.spawn(async move {
            let arrived = match composition {
                Some(composition) => composition.finish().await,
                None => Ok(Counts::default()),
            };
            if let Err(why) = composition::check(arrived, sent) {
                result = wire::transient(why);
            }
            crate::record::record(&shared, TaskOutcome { fence, kind, result }).await;
            drop(permit);
        });
    }
}

/// A frame that makes no sense is ignored and logged: it can belong to no live claim, so nothing is lost by it.
fn readable<T>(parsed: Result<T, wire::Malformed>) -> Option<T> {
    parsed.inspect_err(|error| tracing::warn!(%error, "a worker's frame was ignored")).ok()
}
