//! Which queued candidates are worth a claim: a cheap look that saves doomed commands.
//!
//! This is an optimisation only. The claim's guards decide, under locks; a candidate let through here wrongly
//! fails there, and one held back here wrongly is looked at again at the next wake-up, which whatever held it
//! back sends when it moves.

use super::Dispatcher;
use crate::dispatch::DispatchError;
use crate::resources::Resources;
use converge_domain::ResourceId;
use converge_domain::resource::{Phase, Reaction, ResourceState};

/// What a look at candidates found.
#[derive(Default)]
pub(super) struct Eligible {
    /// Those that may be claimed now.
    pub claimable: Vec<ResourceId>,
    /// Those whose gate says open over an upstream that is not Ready any more.
    pub held: Vec<ResourceId>,
}

fn waits_for_upstream(state: &ResourceState, around: &Resources) -> bool {
    matches!(state.due(), Some(Reaction::Work | Reaction::Compose)) && !upstreams_ready(state, around)
}

fn upstreams_ready(state: &ResourceState, around: &Resources) -> bool {
    state
        .edges
        .iter()
        .all(|edge| around.get(&edge.upstream).is_some_and(|upstream| upstream.phase() == Phase::Ready))
}

/// No pass is under way above it, and nothing above it is going away.
fn ancestors_quiet(state: &ResourceState, around: &Resources) -> bool {
    state.id().ancestors.iter().all(|ancestor| {
        around.get(ancestor).is_some_and(|ancestor| ancestor.pass.is_none() && ancestor.deletion.is_none())
    })
}

impl Dispatcher {
    /// Sorts candidates, keeping the queue's order.
    pub(super) async fn eligible(&self, candidates: &[ResourceId]) -> Result<Eligible, DispatchError> {
        let heads = self.core.resources(candidates).await?;
        let mut around = Vec::new();
        for state in heads.values() {
            around.extend(state.edges.iter().map(|edge| edge.upstream));
            around.extend_from_slice(&state.id().ancestors);
        }
        let around = self.core.resources(&around).await?;
        let now = self.core.now();
        let mut eligible = Eligible::default();
        for id in candidates {
            let Some(state) = heads.get(id) else { continue };
            let due = state.retry_at.is_none_or(|at| at <= now);
            if due && self.may_run(state, &around) {
                eligible.claimable.push(*id);
            } else if waits_for_upstream(state, &around) {
                eligible.held.push(*id);
            }
        }
        Ok(eligible)
    }

    fn may_run(&self, state: &ResourceState, around: &Resources) -> bool {
        let config_present =
            state.provider_config_ref.as_ref().is_none_or(|name| self.core.registry.config(name).is_some());
        match state.due() {
            None => false,
            Some(Reaction::Teardown) => config_present,
            Some(Reaction::Rollup | Reaction::Observe) => config_present && ancestors_quiet(state, around),
            Some(Reaction::Work | Reaction::Compose) => {
                config_present && upstreams_ready(state, around) && ancestors_quiet(state, around)
            }
        }
    }
}
