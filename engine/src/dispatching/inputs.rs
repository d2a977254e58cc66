//! Large inputs, page by page: the children a composer has, the subtree a rollup summarises.
//!
//! The walk is depth first in id order and needs nothing but the last id it gave: a node's own ancestors say
//! where the walk stands. So a page costs no memory between calls and survives a change of process.

use super::Dispatcher;
use crate::dispatch::{DispatchError, Fence, InputPage, InputPart};
use bytes::Bytes;
use converge_domain::ResourceId;
use converge_domain::resource::{Phase, ResourceState, Standing};
use serde_json::{Value, json};

/// A page ends at whichever comes first.
const PAGE_BYTES: usize = 900 * 1024;
const PAGE_ITEMS: usize = 2000;
const SIBLINGS: u32 = 500;

impl Dispatcher {
    pub(super) async fn page(
        &self,
        fence: Fence,
        part: InputPart,
        after: Option<ResourceId>,
    ) -> Result<InputPage, DispatchError> {
        let mut items: Vec<u8> = b"[".to_vec();
        let mut count = 0;
        let mut last = after;
        loop {
            let siblings = self.next_siblings(fence.id, part, last).await?;
            if siblings.is_empty() {
                last = None;
                break;
            }
            let mut full = false;
            for state in siblings {
                last = Some(state.id().id);
                if state.standing() != Standing::LeftOut || part == InputPart::Observed {
                    if count > 0 {
                        items.push(b',');
                    }
                    items.extend_from_slice(item(&state).to_string().as_bytes());
                    count += 1;
                }
                full = items.len() >= PAGE_BYTES || count >= PAGE_ITEMS;
                // A composite's own children come next, before its later siblings.
                let descends = part == InputPart::Descendants && state.shape.composes;
                if full || descends {
                    break;
                }
            }
            if full {
                break;
            }
        }
        items.push(b']');
        Ok(InputPage { items: Bytes::from(items), next: last })
    }

    /// What follows `last` in the walk: its first children, else its next siblings, else an ancestor's.
    async fn next_siblings(
        &self,
        root: ResourceId,
        part: InputPart,
        last: Option<ResourceId>,
    ) -> Result<Vec<std::sync::Arc<ResourceState>>, DispatchError> {
        let Some(last) = last else { return self.children_after(root, None).await };
        let Some(state) = self.core.resource_now(last).await? else {
            // It went away between two pages: its owner is unknown, so the walk ends; the subtree moved and
            // the rollup is owed again.
            return Ok(vec![]);
        };
        if part == InputPart::Descendants && state.shape.composes {
            let children = self.children_after(last, None).await?;
            if !children.is_empty() {
                return Ok(children);
            }
        }
        let mut below = last;
        for ancestor in &state.id().ancestors {
            let siblings = self.children_after(*ancestor, Some(below)).await?;
            if !siblings.is_empty() || *ancestor == root {
                return Ok(siblings);
            }
            below = *ancestor;
        }
        Ok(vec![])
    }

    async fn children_after(
        &self,
        parent: ResourceId,
        after: Option<ResourceId>,
    ) -> Result<Vec<std::sync::Arc<ResourceState>>, DispatchError> {
        let ids = self.core.store.children(parent, after, SIBLINGS).await?;
        let mut heads = self.core.resources_now(&ids).await?;
        Ok(ids.iter().filter_map(|id| heads.remove(id)).collect())
    }
}

fn item(state: &ResourceState) -> Value {
    let identity = state.id();
    let phase = state.phase();
    json!({
        "id": identity.id,
        "kind": identity.kind,
        "kind_version": state.kind_version,
        "name": identity.name,
        "labels": state.labels,
        "owner": identity.owner(),
        "phase": phase,
        "ready": phase == Phase::Ready,
        "generation": state.generation,
        "synced_generation": state.synced_gen,
        "spec": state.effective_spec(),
        "status": state.visible_status(),
    })
}
