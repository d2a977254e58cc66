//! Streams a task's large input page by page, a few pages ahead of the worker.

use crate::backoff::retry;
use crate::shared::Shared;
use crate::state::Pages;
use crate::wire;
use converge_engine::dispatch::{Fence, InputPart};
use converge_protocol::v1;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Runs until the last page, the end of the claim, or the end of the stream.
pub(super) async fn run(
    shared: Arc<Shared>,
    fence: Fence,
    part: InputPart,
    pages: Pages,
    down: mpsc::Sender<v1::Down>,
) {
    let streamed = tokio::select! {
        () = pages.stop.cancelled() => return,
        streamed = stream(&shared, fence, part, &pages, &down) => streamed,
    };
    if let Err(reason) = streamed {
        tracing::warn!(?fence, reason, "a task's input could not be read");
        shared.change(|state| state.input_failed(fence, reason));
    }
}

async fn stream(
    shared: &Shared,
    fence: Fence,
    part: InputPart,
    pages: &Pages,
    down: &mpsc::Sender<v1::Down>,
) -> Result<(), String> {
    let (mut after, mut index) = (None, 0_u32);
    loop {
        // Forgotten, not returned: only the worker's `InputTaken` brings it back. The semaphore is never closed.
        if let Ok(permit) = pages.window.acquire().await {
            permit.forget();
        }
        let page = retry(&shared.config, "input page", || shared.dispatch.input_page(fence, part, after))
            .await
            .map_err(|error| format!("the task's input could not be read: {error}"))?;
        let chunk = v1::InputChunk {
            claim_id: wire::wire_fence(&fence).claim_id,
            index,
            part: part.as_str().to_owned(),
            items: page.items,
            last: page.next.is_none(),
        };
        let sent = down.send(v1::Down { frame: Some(v1::down::Frame::Chunk(chunk)) }).await;
        match (sent, page.next) {
            (Ok(()), Some(next)) => {
                after = Some(next);
                index += 1;
            }
            // Done, or the stream is gone; then the session has set the task adrift.
            (Ok(()), None) | (Err(_), _) => return Ok(()),
        }
    }
}
