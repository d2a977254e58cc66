//! Outcomes as frames.
//!
//! A composition has its frames from when it was made: a redelivery sends the same items under the same frame numbers, so
//! the broker stages them onto the same places.

use super::jobs::{Finished, Parcel};
use crate::error::{TaskError, terminal};
use crate::outcome::Outcome;
use bytes::Bytes;
use converge_protocol::{FRAME_BYTES_MAX, v1};
use std::time::Duration;
use tokio::sync::mpsc;

/// Largest status, output or list of conditions; they travel in one message.
const PART_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;
/// Longest failure message that is worth storing.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Replaces an outcome that cannot travel by a failure that says why.
pub(super) fn fitting(result: Result<Outcome, TaskError>) -> Result<Outcome, TaskError> {
    match result {
        Ok(outcome) => match misfit(&outcome) {
            Some(why) => Err(terminal(why)),
            None => Ok(outcome),
        },
        Err(mut error) => {
            error.message.truncate(error.message.floor_char_boundary(MESSAGE_BYTES_MAX));
            if error.status.as_ref().is_some_and(|status| status.bytes().len() > PART_BYTES_MAX) {
                error.status = None;
                error.message.push_str(" (and its status was too large to keep)");
            }
            Err(error)
        }
    }
}

fn misfit(outcome: &Outcome) -> Option<String> {
    for (part, json) in [("status", &outcome.status), ("output", &outcome.output)] {
        if let Some(json) = json
            && json.bytes().len() > PART_BYTES_MAX
        {
            return Some(format!(
                "the {part} is {} bytes; the limit is {PART_BYTES_MAX}",
                json.bytes().len()
            ));
        }
    }
    for (part, items) in outcome.composition.parts() {
        let bytes = items.longest();
        if bytes > FRAME_BYTES_MAX {
            return Some(format!("one of the {part} is {bytes} bytes; the limit is {FRAME_BYTES_MAX}"));
        }
    }
    None
}

/// Sends a parcel whole. None: the stream is gone.
pub(super) async fn deliver(up: mpsc::Sender<v1::Up>, parcel: Parcel) -> Option<()> {
    match parcel {
        Parcel::Outcome(finished) => deliver_outcome(&up, &finished).await,
        Parcel::InputTaken { fence, index } => {
            send(&up, v1::up::Frame::InputTaken(v1::InputTaken { fence: Some(fence), index })).await
        }
        Parcel::Drain { released } => send(&up, v1::up::Frame::Drain(v1::Drain { released })).await,
    }
}

pub(super) async fn send(up: &mpsc::Sender<v1::Up>, frame: v1::up::Frame) -> Option<()> {
    up.send(v1::Up { frame: Some(frame) }).await.ok()
}

async fn deliver_outcome(up: &mpsc::Sender<v1::Up>, finished: &Finished) -> Option<()> {
    let result = match &finished.result {
        Ok(outcome) => {
            let mut chunks = 0;
            for (part, items) in outcome.composition.parts() {
                for frame in items.frames() {
                    let chunk = v1::OutcomeChunk {
                        fence: Some(finished.fence.clone()),
                        index: chunks,
                        part: part.to_owned(),
                        items: frame,
                    };
                    send(up, v1::up::Frame::Chunk(chunk)).await?;
                    chunks += 1;
                }
            }
            v1::outcome::Result::Success(success(outcome, chunks))
        }
        Err(error) => v1::outcome::Result::Failure(v1::Failure {
            message: error.message.clone(),
            terminal: error.terminal,
            status: error.status.as_ref().map(|status| status.bytes().clone()),
        }),
    };
    let outcome = v1::Outcome {
        fence: Some(finished.fence.clone()),
        result: Some(result),
        kind: finished.kind.clone(),
        kind_version: finished.kind_version,
    };
    send(up, v1::up::Frame::Outcome(outcome)).await
}

fn success(outcome: &Outcome, chunks: u32) -> v1::Success {
    let seconds = |duration: Duration| {
        let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
        u32::try_from(whole).unwrap_or(u32::MAX)
    };
    v1::Success {
        status: outcome.status.as_ref().map(|status| status.bytes().clone()),
        conditions: outcome
            .conditions
            .as_ref()
            .and_then(|conditions| serde_json::to_vec(conditions).ok())
            .map(Bytes::from),
        healthy: outcome.healthy,
        changed: outcome.changed,
        differs: outcome.differs.clone(),
        in_progress: outcome.in_progress,
        requeue_after_secs: outcome.requeue_after.map(seconds),
        chunks,
        children: outcome.composition.children.len() as u64,
        edges: outcome.composition.edges.len() as u64,
        configs: outcome.composition.configs.len() as u64,
        output: outcome.output.as_ref().map(|output| output.bytes().clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_larger_than_a_frame_is_a_terminal_failure_that_says_so() {
        let mut composition = crate::Composition::new();
        composition.config(&serde_json::json!({ "data": "x".repeat(FRAME_BYTES_MAX) }));
        let error = fitting(Ok(Outcome::new().composition(composition))).unwrap_err();
        assert!(error.is_terminal() && error.message().contains("one of the configs"), "{error}");
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let error = fitting(Err(TaskError::transient("日".repeat(MESSAGE_BYTES_MAX)))).unwrap_err();
        assert!(error.message().len() <= MESSAGE_BYTES_MAX && error.message().ends_with('日'));
    }
}
