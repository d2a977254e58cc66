//! Reading what is around a batch of resources.

use crate::resources::Resources;
use converge_domain::Sequence;
use converge_domain::resource::{ResourceState, Standing, UpstreamFact};
use serde_json::Value;
use std::sync::Arc;

/// The facts about each upstream of `state`, in the order of its edges.
pub(super) fn upstream_facts(state: &ResourceState, upstreams: &Resources) -> Vec<UpstreamFact> {
    state
        .edges
        .iter()
        .map(|edge| match upstreams.get(&edge.upstream).filter(|upstream| upstream.exists()) {
            Some(upstream) => {
                let ready = upstream.phase() == converge_domain::resource::Phase::Ready;
                UpstreamFact {
                    id: edge.upstream,
                    sequence: Sequence(upstream.sequence),
                    ready,
                    standing: upstream.standing(),
                    // Flows read an upstream's status while it is Ready only.
                    status: if ready && !edge.values.is_empty() {
                        Arc::new(upstream.visible_status())
                    } else {
                        Arc::new(Value::Null)
                    },
                }
            }
            None => UpstreamFact {
                id: edge.upstream,
                sequence: Sequence(0),
                ready: false,
                standing: Standing::LeftOut,
                status: Arc::new(Value::Null),
            },
        })
        .collect()
}
