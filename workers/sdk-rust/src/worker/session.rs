//! One connection to one broker.
//!
//! Its parts (reading, sending, beating, watching readiness and certificates) are branches of one future, so when any of
//! them ends, all of them have: no leftover of an old connection can take a parcel from the next one.

use super::deliver::{deliver, send};
use super::dial::{DialError, dial};
use super::{Core, execute};
use crate::config::{self, ConfigUpdate};
use crate::input::Page;
use converge_protocol::v1::{self, down, up};
use futures::stream::{FuturesUnordered, SelectAll, StreamExt};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, WatchStream};
use tokio_util::sync::CancellationToken;
use tonic::Streaming;

/// The reason of a cancel after which the broker still waits for an answer.
const DELETION: &str = "deletion";
/// Up frames that may wait for the network.
const UP_FRAMES: usize = 32;
/// How long a broker may take to accept a subscription.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a finished worker waits for the broker to close the stream with it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("{} ({:?})", .0.message(), .0.code())]
    Status(#[from] tonic::Status),
    #[error("the broker did not accept the subscription in time")]
    NotSubscribed,
    #[error("the broker closed the stream")]
    Closed,
    #[error("certificates were rotated")]
    Rotated,
}

/// Connects and serves until the connection ends; `Ok` when the worker is finished.
pub(super) async fn run(
    core: &Arc<Core>,
    broker: &str,
    finished: &CancellationToken,
) -> Result<(), SessionError> {
    let tls = core.settings.tls.as_ref();
    let (mut client, material) = tokio::select! {
        () = finished.cancelled() => return Ok(()),
        dialled = dial(broker, tls) => dialled?,
    };
    let (up, frames) = mpsc::channel(UP_FRAMES);
    let subscribe = v1::Subscribe {
        worker_name: core.name.clone(),
        serves: core.serves(),
        max_inflight: u32::try_from(core.settings.max_parallel).unwrap_or(u32::MAX),
        running: core.jobs.running(),
        revision: converge_protocol::REVISION,
    };
    // The channel is empty and has room.
    let _ = send(&up, up::Frame::Subscribe(subscribe)).await;
    let accepted = async {
        let mut down = client.work(ReceiverStream::new(frames)).await?.into_inner();
        match down.message().await?.and_then(|first| first.frame) {
            Some(down::Frame::Subscribed(subscribed)) => Ok((down, subscribed)),
            _ => Err(SessionError::NotSubscribed),
        }
    };
    let (mut down, subscribed) = tokio::time::timeout(SUBSCRIBE_TIMEOUT, accepted)
        .await
        .map_err(|_| SessionError::NotSubscribed)??;
    core.connected.store(true, Ordering::Relaxed);
    tracing::info!(broker, session = subscribed.session, "connected");
    core.jobs.say_again();
    let beat = Duration::from_millis(u64::from(subscribed.heartbeat_ms.max(1)));
    let rotated = async {
        match (tls, &material) {
            (Some(files), Some(used)) => files.rotated(used).await,
            _ => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = read(core, &mut down) => Err(ended),
        () = pump(core, &up) => Err(SessionError::Closed),
        () = heartbeats(core, &up, beat) => Err(SessionError::Closed),
        () = readiness(core, &up) => Err(SessionError::Closed),
        () = rotated => Err(SessionError::Rotated),
        () = finished.cancelled() => Ok(()),
    };
    core.jobs.stream_lost();
    if ended.is_ok() {
        // Half-close, so that what was sent arrives before the connection goes.
        drop(up);
        let _ =
            tokio::time::timeout(CLOSE_TIMEOUT, async { while let Ok(Some(_)) = down.message().await {} })
                .await;
    }
    ended
}

/// Acts on what comes down; answers why it ended.
async fn read(core: &Arc<Core>, down: &mut Streaming<v1::Down>) -> SessionError {
    loop {
        let frame = match down.message().await {
            Ok(Some(message)) => message.frame,
            Ok(None) => return SessionError::Closed,
            Err(status) => return status.into(),
        };
        match frame {
            Some(down::Frame::Task(task)) => execute::start(core, task),
            Some(down::Frame::Chunk(chunk)) => {
                let (part, items) = (chunk.part, chunk.items);
                let page = Page { index: chunk.index, part, items, last: chunk.last };
                core.jobs.page(&chunk.claim_id, page);
            }
            Some(down::Frame::Config(config)) => configure(core, config),
            Some(down::Frame::Cancel(cancel)) => {
                if let Some(fence) = cancel.fence {
                    tracing::info!(claim_id = fence.claim_id, reason = cancel.reason, "a task was cancelled");
                    core.jobs.cancel(&fence.claim_id, cancel.reason == DELETION);
                }
            }
            Some(down::Frame::Received(received)) => {
                if let Some(fence) = received.fence {
                    if !received.accepted {
                        tracing::info!(claim_id = fence.claim_id, "an outcome came too late and was fenced");
                    }
                    core.jobs.received(&fence.claim_id);
                }
            }
            // Said once at the start; and what a newer broker may say, readers ignore.
            Some(down::Frame::Subscribed(_)) | None => {}
        }
    }
}

/// A panicking `on_config` must not take the connection with it.
fn configure(core: &Core, config: v1::Config) {
    let update = ConfigUpdate {
        kind: config.kind,
        kind_version: config.kind_version,
        config: config.config.map(config::from_wire),
    };
    core.defaults.update(&update);
    let concerned = core
        .providers
        .iter()
        .filter(|provider| provider.provider().is_some() || provider.kind() == update.kind);
    for provider in concerned {
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| provider.on_config(&update)));
        if told.is_err() {
            tracing::error!(kind = update.kind, "on_config panicked; the config is in force all the same");
        }
    }
}

/// Sends parcels; a large composition does not hold up the small ones behind it.
async fn pump(core: &Core, up: &mpsc::Sender<v1::Up>) {
    let mut deliveries = FuturesUnordered::new();
    loop {
        tokio::select! {
            parcel = core.jobs.next_parcel() => deliveries.push(deliver(up.clone(), parcel)),
            Some(delivered) = deliveries.next() => {
                if delivered.is_none() {
                    return;
                }
                core.jobs.said();
            }
        }
    }
}

async fn heartbeats(core: &Core, up: &mpsc::Sender<v1::Up>, every: Duration) {
    let mut beat = tokio::time::interval(every);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        let progressing = core.jobs.progressing();
        if !progressing.is_empty()
            && send(up, up::Frame::Heartbeat(v1::Heartbeat { progressing })).await.is_none()
        {
            return;
        }
    }
}

async fn readiness(core: &Core, up: &mpsc::Sender<v1::Up>) {
    let mut changes: SelectAll<_> = core
        .providers
        .iter()
        .filter_map(|provider| provider.ready_changes())
        .map(WatchStream::from_changes)
        .collect();
    while changes.next().await.is_some() {
        let readiness = v1::Readiness { serves: core.serves() };
        if send(up, up::Frame::Readiness(readiness)).await.is_none() {
            return;
        }
    }
    std::future::pending().await
}
