//! Receives a composition that is larger than one message: frames in order, staged with contiguous ordinals.
//!
//! Each claim has its own small task and queue, so that a composer of a million children delays nobody's heartbeat.
//! A frame that is missing, out of order or garbled spoils the composition, and the outcome that ends it becomes a
//! transient failure that says so: composing again is always safe, applying a part of a set never is.

use crate::backoff::retry;
use crate::shared::Shared;
use crate::wire::Counts;
use bytes::Bytes;
use converge_engine::dispatch::{Fence, StagedFrame};
use converge_event_store::StagedPart;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Frames that wait while one is being staged.
const QUEUE_FRAMES: usize = 4;

/// One frame as it came.
pub(crate) struct Frame {
    pub(crate) index: u32,
    pub(crate) part: String,
    pub(crate) items: Vec<Bytes>,
}

/// The receiving end of one claim's composition.
pub(crate) struct Composition {
    frames: mpsc::Sender<Frame>,
    done: JoinHandle<Result<Counts, String>>,
}

impl Composition {
    pub(crate) fn start(shared: &Arc<Shared>, fence: Fence) -> Self {
        let (frames, queue) = mpsc::channel(QUEUE_FRAMES);
        let done = tokio::spawn(stage_all(Arc::clone(shared), fence, queue));
        Self { frames, done }
    }

    /// Takes a frame; waits while the engine is behind.
    pub(crate) async fn frame(&self, frame: Frame) {
        // A closed queue means that staging panicked; `finish` reports it.
        let _ = self.frames.send(frame).await;
    }

    /// No frame follows. What was staged, or why the composition is spoiled.
    pub(crate) async fn finish(self) -> Result<Counts, String> {
        drop(self.frames);
        self.done.await.unwrap_or_else(|error| Err(format!("staging the composition failed: {error}")))
    }
}

/// Compares what arrived with what the worker says it sent.
pub(crate) fn check(arrived: Result<Counts, String>, sent: Counts) -> Result<(), String> {
    let arrived = arrived?;
    if arrived == sent {
        return Ok(());
    }
    Err(format!(
        "the composition did not arrive whole: {} of {} frames, {} of {} children, {} of {} edges, {} of {} configs",
        arrived.frames,
        sent.frames,
        arrived.children,
        sent.children,
        arrived.edges,
        sent.edges,
        arrived.configs,
        sent.configs
    ))
}

async fn stage_all(
    shared: Arc<Shared>,
    fence: Fence,
    mut queue: mpsc::Receiver<Frame>,
) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let mut spoiled = None;
    // Goes on reading after the first fault: the worker must be able to finish sending.
    while let Some(frame) = queue.recv().await {
        if spoiled.is_none()
            && let Err(why) = stage(&shared, fence, frame, &mut counts).await
        {
            tracing::warn!(?fence, why, "a composition is spoiled");
            spoiled = Some(why);
        }
    }
    spoiled.map_or(Ok(counts), Err)
}

async fn stage(shared: &Shared, fence: Fence, frame: Frame, counts: &mut Counts) -> Result<(), String> {
    if u64::from(frame.index) != counts.frames {
        return Err(format!(
            "a frame of the composition was lost: frame {} came where {} was due",
            frame.index, counts.frames
        ));
    }
    let (part, count) = match frame.part.as_str() {
        "children" => (StagedPart::Child, &mut counts.children),
        "edges" => (StagedPart::Edge, &mut counts.edges),
        "configs" => (StagedPart::Config, &mut counts.configs),
        other => return Err(format!("a composition has no part `{other}`")),
    };
    let items = frame
        .items
        .into_iter()
        .map(|item| String::from_utf8(item.into()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| format!("frame {} of the composition is not UTF-8", frame.index))?;
    *count += items.len() as u64;
    let after = i64::try_from(counts.children + counts.edges + counts.configs).unwrap_or(i64::MAX);
    let first_ordinal = after - i64::try_from(items.len()).unwrap_or(0);
    counts.frames += 1;
    let staged = StagedFrame { fence, first_ordinal, part, items };
    retry(&shared.config, "stage", || shared.dispatch.stage(staged.clone()))
        .await
        .map_err(|error| format!("the composition could not be staged: {error}"))
}
