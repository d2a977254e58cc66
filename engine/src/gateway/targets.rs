//! The resources that a request names.

use super::{EngineGateway, unavailable};
use crate::gateway_api::GatewayError;
use converge_domain::resource::{ResourceError, ResourceState};
use converge_domain::{ResourceId, ResourceRef};
use std::collections::HashSet;
use std::sync::Arc;

/// Most targets of one request: they are one group of commands, and so one transaction.
pub(super) const TARGETS_MAX: usize = 1000;

impl EngineGateway {
    /// The live resources of these names, each once; one that does not exist refuses the request.
    pub(super) async fn targets(
        &self,
        targets: &[ResourceRef],
    ) -> Result<Vec<Arc<ResourceState>>, GatewayError> {
        if targets.len() > TARGETS_MAX {
            return Err(GatewayError::Conflict(format!(
                "{} resources are named; at most {TARGETS_MAX} go in one request, so split it",
                targets.len()
            )));
        }
        let bearers = self.core.bearers(targets).await.map_err(unavailable)?;
        let mut seen: HashSet<ResourceId> = HashSet::new();
        let mut found = Vec::with_capacity(targets.len());
        for target in targets {
            let state = bearers.get(target);
            let state = state.ok_or_else(|| GatewayError::NotFound(format!("{target} does not exist")))?;
            if seen.insert(state.id().id) {
                found.push(Arc::clone(state));
            }
        }
        Ok(found)
    }
}

/// A domain refusal, by the name of the resource that it is about. One that ended since it was looked up does not exist.
pub(super) fn refusal(subject: Option<&ResourceRef>, error: &ResourceError) -> GatewayError {
    let subject = subject.map(ToString::to_string).unwrap_or_default();
    match error {
        ResourceError::NotFound => GatewayError::NotFound(format!("{subject} does not exist")),
        error => GatewayError::Conflict(format!("{subject}: {error}")),
    }
}
