//! Membership: this process's lease, and the end of dead processes' claims.

use crate::dispatch::Fence;
use crate::engine::Core;
use converge_domain::{ResourceId, SessionId};
use converge_event_store::{Member, StoreError};
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Claims released per round, so that one dead broker's thousands do not crowd out everything else.
const RELEASE_PAGE: u32 = 500;
/// Leases after which a dead member's row goes too.
const FORGOTTEN_LEASES: i64 = 20;

/// A joined member; leave it on shutdown.
pub(crate) struct Membership {
    core: Arc<Core>,
}

impl Membership {
    /// Says good-bye. The row stays until its lease ends: workers resume this process's claims at other brokers
    /// meanwhile, and a row taken away at once would have the claims released under them.
    pub fn leave(&self) {
        tracing::debug!(session = %self.core.session, "left; the lease ends by itself");
    }
}

/// Joins and keeps beating until `stop`.
pub(crate) async fn join(
    core: &Arc<Core>,
    tracker: &TaskTracker,
    stop: CancellationToken,
) -> Result<Membership, StoreError> {
    core.store.beat(&member(core)).await?;
    let beating = core.clone();
    tracker.spawn(async move { beat(&beating, &stop).await });
    Ok(Membership { core: core.clone() })
}

fn member(core: &Core) -> Member {
    Member {
        session: core.session,
        role: core.config.role.clone(),
        host: core.config.host.clone(),
        broker_address: core.config.broker_address.clone(),
        served: core.served.words(),
    }
}

async fn beat(core: &Arc<Core>, stop: &CancellationToken) {
    let lease_ms = i64::try_from(core.config.lease.as_millis()).unwrap_or(i64::MAX);
    // Nobody ends another's claims before he himself has seen the database for one whole lease: after a database
    // outage every lease looks old, though every process is alive.
    let mut seen_since: Option<Instant> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(core.config.beat) => {}
            () = core.served.changed() => {}
        }
        let beaten = tokio::time::timeout(core.config.lease / 2, core.store.beat(&member(core))).await;
        if let Ok(Ok(_)) = beaten {
            seen_since.get_or_insert_with(Instant::now);
        } else {
            tracing::warn!("the database does not answer; no lease is judged meanwhile");
            seen_since = None;
        }
        let may_judge = seen_since.is_some_and(|since| since.elapsed() >= core.config.lease);
        if may_judge && let Err(error) = end_dead_sessions(core, lease_ms).await {
            tracing::warn!(%error, "cannot look for dead sessions");
        }
    }
}

async fn end_dead_sessions(core: &Arc<Core>, lease_ms: i64) -> Result<(), StoreError> {
    for session in core.store.dead_sessions(lease_ms).await? {
        if session == core.session {
            continue;
        }
        let claims = core.store.claims_of(session, RELEASE_PAGE).await?;
        tracing::info!(%session, claims = claims.len(), "releasing the claims of a dead session");
        let released = claims.into_iter().map(|id| release(core, id, session));
        futures::future::join_all(released).await;
    }
    for (member, age_ms) in core.store.members().await? {
        let forgotten = age_ms > FORGOTTEN_LEASES * lease_ms && member.session != core.session;
        if forgotten && core.store.claims_of(member.session, 1).await?.is_empty() {
            core.store.remove_member(member.session).await?;
        }
    }
    Ok(())
}

/// Two processes may do this at once: the second finds another fence, or none, and changes nothing.
async fn release(core: &Core, id: ResourceId, session: SessionId) {
    let claim = match core.resource_now(id).await {
        Ok(state) => state.and_then(|state| state.claim.clone()),
        Err(error) => return tracing::warn!(%error, "cannot read a claim to release"),
    };
    let Some(claim) = claim.filter(|claim| claim.session == session) else { return };
    let fence = Fence { id, epoch: claim.epoch, claim_id: claim.claim_id };
    if let Err(error) = core.release_claim(fence, "its broker's lease expired").await {
        tracing::warn!(%id, %error, "cannot release a claim");
    }
}
