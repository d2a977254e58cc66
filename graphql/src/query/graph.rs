//! Dependencies and the values that flow over them.

use crate::consistency::{list_at_least, note};
use crate::error::ApiError;
use crate::limits::GRAPH_NODES_MAX;
use crate::state::ApiState;
use crate::types::{Edge, Position, Resource};
use async_graphql::{Context, ID, Object, SimpleObject};
use converge_domain::resource::ResourceState;
use converge_domain::{AggregateId, ResourceId};
use std::collections::HashSet;
use std::sync::Arc;

/// Rows read at a time.
const PAGE: u32 = 1_000;

#[derive(Default)]
pub struct GraphQuery;

/// A resource with everything below it, and everything that these need, wherever it is.
#[derive(SimpleObject)]
pub struct Graph {
    /// The resource first, then what is below it, depth-first; then what is needed from elsewhere.
    nodes: Vec<Resource>,
    edges: Vec<GraphEdge>,
    /// False: there is more than is shown.
    complete: bool,
    position: Position,
}

/// One resource needs another.
#[derive(SimpleObject)]
pub struct GraphEdge {
    from: ID,
    /// What it needs, with the values that flow from there.
    to: Edge,
}

#[Object]
impl GraphQuery {
    /// What depends on what in a composition, or around a single resource; null when there is none of that name.
    #[graphql(complexity = "1000 + 50 * child_complexity")]
    async fn graph(
        &self,
        ctx: &Context<'_>,
        kind: String,
        name: String,
        min_position: Option<Position>,
    ) -> Result<Option<Graph>, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        let (mut states, mut after, mut position) = (Vec::<Arc<ResourceState>>::new(), None, None);
        let complete = loop {
            let min = min_position.map(Into::into);
            let page =
                list_at_least(state, min, || state.list.tree(&kind, &name, after.as_ref(), PAGE)).await?;
            position = position.or(Some(page.position));
            let Some(tree) = page.value else { break true };
            states.extend(tree.rows.into_iter().map(|node| node.row.state));
            if states.len() > GRAPH_NODES_MAX {
                break false;
            }
            after = tree.next;
            if after.is_none() {
                break true;
            }
        };
        states.truncate(GRAPH_NODES_MAX);
        if states.is_empty() {
            return Ok(None);
        }
        let reached = upstreams(state, &mut states).await?;
        let edges = states.iter().flat_map(|dependent| {
            let from = ID::from(dependent.id().id.to_string());
            dependent
                .edges
                .iter()
                .map(move |edge| GraphEdge { from: from.clone(), to: Edge::new(dependent, edge) })
        });
        let edges = edges.collect();
        let position = position.unwrap_or_default();
        note(ctx, position);
        Ok(Some(Graph {
            nodes: states.into_iter().map(Resource::new).collect(),
            edges,
            complete: complete && reached,
            position: position.into(),
        }))
    }
}

/// Adds what the resources need and these need in turn; false when that is too much.
async fn upstreams(state: &ApiState, states: &mut Vec<Arc<ResourceState>>) -> Result<bool, ApiError> {
    let mut seen: HashSet<ResourceId> = states.iter().map(|resource| resource.id().id).collect();
    let mut looked_at = 0;
    loop {
        let edges = states[looked_at..].iter().flat_map(|resource| &resource.edges);
        let wanted = edges.filter(|edge| !edge.unbound && !edge.conflicted).map(|edge| edge.upstream);
        let missing: Vec<AggregateId> = wanted.filter(|id| seen.insert(*id)).map(Into::into).collect();
        looked_at = states.len();
        if missing.is_empty() {
            return Ok(true);
        }
        if states.len() + missing.len() > GRAPH_NODES_MAX {
            return Ok(false);
        }
        let heads = state.store.heads(&missing).await?;
        states.extend(heads.iter().filter_map(|head| head.state.as_resource().cloned()));
    }
}
