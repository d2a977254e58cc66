//! A program's two outputs: one is an answer and bounded, the other is talk and only its end is kept.

use super::OUTPUT_BYTES_MAX;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How much of the end of standard error is kept for the failure's message.
const TAIL_BYTES: usize = 4 * 1024;
const READ_BYTES: usize = 16 * 1024;

/// What both readers share: bytes so far, and whether the stream has ended.
struct Reader {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    closed: CancellationToken,
    task: JoinHandle<()>,
}

impl Reader {
    fn start<R>(
        source: Option<R>,
        mut take: impl FnMut(&mut VecDeque<u8>, &[u8]) -> bool + Send + 'static,
    ) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
    {
        let (bytes, closed) = (Arc::new(Mutex::new(VecDeque::new())), CancellationToken::new());
        let (sink, ended) = (Arc::clone(&bytes), closed.clone());
        let task = tokio::spawn(async move {
            let _ended = ended.drop_guard();
            let Some(mut source) = source else { return };
            let mut buffer = vec![0; READ_BYTES];
            while let Ok(count @ 1..) = source.read(&mut buffer).await {
                let read = buffer.get(..count).unwrap_or_default();
                if !take(&mut locked(&sink), read) {
                    return;
                }
            }
        });
        Self { bytes, closed, task }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(bytes: &Mutex<VecDeque<u8>>) -> MutexGuard<'_, VecDeque<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard output, up to the limit.
pub(super) struct Stdout {
    reader: Reader,
    overflow: CancellationToken,
}

impl Stdout {
    pub(super) fn collect<R: AsyncRead + Unpin + Send + 'static>(source: Option<R>) -> Self {
        let overflow = CancellationToken::new();
        let over = overflow.clone();
        let reader = Reader::start(source, move |bytes, read| {
            if bytes.len() + read.len() > OUTPUT_BYTES_MAX {
                over.cancel();
                return false;
            }
            bytes.extend(read);
            true
        });
        Self { reader, overflow }
    }

    pub(super) async fn overflowed(&self) {
        self.overflow.cancelled().await;
    }

    pub(super) fn has_overflowed(&self) -> bool {
        self.overflow.is_cancelled()
    }

    pub(super) async fn closed(&self) {
        self.reader.closed.cancelled().await;
    }

    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *locked(&self.reader.bytes)).into()
    }
}

/// Standard error: each line to the log, the end kept.
pub(super) struct Stderr(Reader);

impl Stderr {
    pub(super) fn follow<R: AsyncRead + Unpin + Send + 'static>(source: Option<R>, label: String) -> Self {
        let mut line = Vec::new();
        Self(Reader::start(source, move |tail, read| {
            for byte in read {
                if *byte == b'\n' || line.len() >= TAIL_BYTES {
                    tracing::info!(program = label, "{}", String::from_utf8_lossy(&line));
                    line.clear();
                }
                if *byte != b'\n' {
                    line.push(*byte);
                }
            }
            tail.extend(read);
            let excess = tail.len().saturating_sub(TAIL_BYTES);
            tail.drain(..excess);
            true
        }))
    }

    pub(super) async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    pub(super) fn tail(&self) -> String {
        let bytes: Vec<u8> = locked(&self.0.bytes).iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}
