//! Reading what is around a batch of resources.

use super::Shared;
use converge_domain::resource::{ResourceState, Standing, UpstreamFact};
use converge_domain::{AggregateId, ResourceId, Sequence};
use converge_event_store::StoreError;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Resource heads by id.
pub(super) type Heads = HashMap<ResourceId, Arc<ResourceState>>;

impl Shared {
    pub(super) async fn heads(&self, ids: impl IntoIterator<Item = ResourceId>) -> Result<Heads, StoreError> {
        let unique: HashSet<AggregateId> = ids.into_iter().map(AggregateId::from).collect();
        if unique.is_empty() {
            return Ok(Heads::new());
        }
        let unique: Vec<_> = unique.into_iter().collect();
        let heads = self.core.store.heads(&unique).await?;
        Ok(heads
            .into_iter()
            .filter_map(|head| Some((ResourceId(head.id.0), head.state.as_resource()?.clone())))
            .collect())
    }
}

/// The facts about each upstream of `state`, in the order of its edges.
pub(super) fn upstream_facts(state: &ResourceState, upstreams: &Heads) -> Vec<UpstreamFact> {
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
