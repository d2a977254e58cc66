//! Listens to the engine: queues that grew, claims that ended, configs that changed.

use crate::shared::Shared;
use std::sync::Arc;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// Follows wakeups. Many of them are answered together: one look at the catalog serves all that are waiting.
pub(crate) async fn wakeups(shared: Arc<Shared>) {
    let mut wakeups = shared.dispatch.wakeups();
    // Whatever woke before this receiver existed was not heard.
    let mut missed = true;
    loop {
        let mut woken = std::collections::BTreeSet::new();
        if !missed {
            tokio::select! {
                () = shared.shutdown.cancelled() => return,
                first = wakeups.recv() => match first {
                    Ok(kind) => { woken.insert(kind); }
                    Err(RecvError::Lagged(_)) => missed = true,
                    Err(RecvError::Closed) => return,
                },
            }
        }
        loop {
            match wakeups.try_recv() {
                Ok(kind) => {
                    woken.insert(kind);
                }
                Err(TryRecvError::Lagged(_)) => missed = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        let catalog = shared.dispatch.served_kinds();
        let all = std::mem::take(&mut missed);
        shared.change(|state| {
            state.learn_kinds(catalog);
            if all {
                state.wake_all();
            } else {
                woken.iter().for_each(|kind| state.wake(kind));
            }
        });
    }
}

/// Follows claims that the engine ended by itself. Those missed by a lagging receiver cost nothing but work: their
/// outcomes meet a dead fence.
pub(crate) async fn cancellations(shared: Arc<Shared>) {
    let mut cancellations = shared.dispatch.cancellations();
    loop {
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            ended = cancellations.recv() => match ended {
                Ok((fence, reason)) => shared.change(|state| state.cancelled(fence, &reason)),
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "cancellations were missed; their outcomes will be fenced");
                }
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// Follows default configs.
pub(crate) async fn config_changes(shared: Arc<Shared>) {
    let mut changes = shared.dispatch.config_changes();
    loop {
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            changed = changes.recv() => match changed {
                Ok(kind) => shared.change(|state| state.config_changed(&kind)),
                Err(RecvError::Lagged(_)) => {
                    let kinds = shared.dispatch.served_kinds();
                    shared.change(|state| kinds.iter().for_each(|(kind, _)| state.config_changed(kind)));
                }
                Err(RecvError::Closed) => return,
            },
        }
    }
}
