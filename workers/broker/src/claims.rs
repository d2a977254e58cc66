//! The claim loop: whenever a slot or a queue has changed, ask the engine for exactly what fits.
//!
//! There is no polling here. The loop sleeps until told that a claim may have become possible, and
//! every change of the memory that can make one possible says so.

use crate::shared::Shared;
use crate::state::ClaimJob;
use converge_engine::dispatch::ClaimRequest;
use std::sync::Arc;
use tokio::time::Instant;

/// Runs until shutdown.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            () = shared.claimable.notified() => {}
        }
        for job in shared.change(crate::state::State::plan_claims) {
            // A claim is an obligation: once asked, its tasks are live in the store and must be pushed or released.
            let shared = Arc::clone(&shared);
            shared.clone().obligations.spawn(async move { claim(&shared, job).await });
        }
    }
}

async fn claim(shared: &Arc<Shared>, job: ClaimJob) {
    let request = ClaimRequest {
        kind: job.kind.clone(),
        limit: job.limit,
        session: shared.dispatch.session(),
        worker: job.identity.clone(),
    };
    let answer = shared.dispatch.claim(request).await;
    let rest = shared.change(|state| state.claimed(&job, answer, Instant::now()));
    if let Some(rest) = rest {
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            tokio::select! {
                () = shared.shutdown.cancelled() => {}
                () = tokio::time::sleep(rest) => shared.change(|state| state.unpark(&job.kind)),
            }
        });
    }
}
