//! What a worker gets: everything it needs, nothing it must look up.

use super::Dispatcher;
use crate::dispatch::{Fence, InputPart, Task};
use crate::registry::KindEntry;
use bytes::Bytes;
use converge_domain::resource::{Claim, Reaction, ResourceState};
use serde_json::json;

impl Dispatcher {
    /// The task of the claim just taken.
    pub(super) fn task(&self, state: &ResourceState, entry: &KindEntry) -> Option<Task> {
        let claim = state.claim.as_ref()?;
        let identity = state.id();
        let reaction = entry.manifest.reaction(claim.reaction, claim.finalizer.as_deref());
        let status = state.visible_status();
        Some(Task {
            fence: Fence { id: identity.id, epoch: claim.epoch, claim_id: claim.claim_id },
            kind: state.task_kind_ref(),
            provider: entry.manifest.provider().to_owned(),
            name: identity.name.clone(),
            reaction: claim.reaction,
            observes: entry.shape.observes,
            reaction_name: reaction.map(|reaction| reaction.name.clone()).unwrap_or_default(),
            finalizer: claim.finalizer.clone(),
            generation: claim.generation,
            attempt: state.attempts + 1,
            idempotency_key: idempotency_key(state, claim),
            deadline_ms: claim.deadline_at.map(|at| u64::try_from(at.0 - claim.claimed_at.0).unwrap_or(0)),
            labels: state.labels.clone(),
            spec: Bytes::from(state.effective_spec().to_string()),
            status: status
                .as_object()
                .is_some_and(|fields| !fields.is_empty())
                .then(|| Bytes::from(status.to_string())),
            config_override: state
                .provider_config_ref
                .as_ref()
                .and_then(|name| self.core.registry.config(name))
                .map(|config| config.snapshot),
            default_config: self
                .core
                .registry
                .default_config(&state.task_kind_ref())
                .map(|config| config.snapshot),
            summary: (claim.reaction == Reaction::Rollup).then(|| {
                Bytes::from(json!({ "subtree": state.subtree, "digest": claim.subtree_digest }).to_string())
            }),
            emits: reaction
                .map(|reaction| reaction.emits.iter().filter_map(|emit| word(*emit)).collect())
                .unwrap_or_default(),
            paged_input: match claim.reaction {
                Reaction::Compose => Some(InputPart::Observed),
                Reaction::Rollup => Some(InputPart::Descendants),
                Reaction::Work | Reaction::Teardown | Reaction::Observe => None,
            },
        })
    }
}

/// The same for every retry and redelivery of one decision, new for every new decision.
fn idempotency_key(state: &ResourceState, claim: &Claim) -> String {
    let id = state.id().id;
    let (generation, round) = (claim.generation, claim.round);
    match claim.reaction {
        Reaction::Work => format!("{id}/work/{generation}.{round}"),
        Reaction::Compose => format!("{id}/compose/{generation}.{round}"),
        Reaction::Observe => format!("{id}/observe/{round}"),
        Reaction::Rollup => format!("{id}/rollup/{}", claim.subtree_digest.as_deref().unwrap_or("none")),
        Reaction::Teardown => {
            format!("{id}/teardown/{generation}.{round}/{}", claim.finalizer.as_deref().unwrap_or_default())
        }
    }
}

fn word(emit: converge_domain::kind::Emit) -> Option<String> {
    serde_json::to_value(emit).ok()?.as_str().map(str::to_owned)
}
