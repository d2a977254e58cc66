//! One resource, from its head: as fresh as its last commit.

use crate::consistency::{heads_position, note};
use crate::error::ApiError;
use crate::loaders::ByIdLoader;
use crate::state::ApiState;
use crate::types::{Node, Position, Resource, resource_id};
use async_graphql::{Context, ID, Object};
use converge_domain::{AggregateId, ResourceRef};
use std::sync::Arc;

#[derive(Default)]
pub struct ResourceQuery;

#[Object]
impl ResourceQuery {
    /// One live resource, by id or by kind and name. The response's `extensions.position` is a position
    /// that the answer includes.
    async fn resource(
        &self,
        ctx: &Context<'_>,
        id: Option<ID>,
        kind: Option<String>,
        name: Option<String>,
        min_position: Option<Position>,
    ) -> Result<Option<Resource>, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        let position = heads_position(state, min_position.map(Into::into)).await?;
        let id = match (id, kind, name) {
            (Some(id), None, None) => AggregateId::from(resource_id(&id)?),
            (None, Some(kind), Some(name)) => {
                let names = state.store.names(&[ResourceRef::new(kind, name)]).await?;
                let Some((_, id)) = names.into_iter().next() else {
                    note(ctx, position);
                    return Ok(None);
                };
                id
            }
            _ => return Err(ApiError::bad_request("give either `id`, or `kind` and `name`")),
        };
        let heads = state.store.heads(&[id]).await?;
        note(ctx, position);
        Ok(heads
            .first()
            .and_then(|head| head.state.as_resource())
            .filter(|state| state.exists())
            .map(|state| Resource::new(Arc::clone(state))))
    }

    /// Whatever has this id.
    async fn node(&self, ctx: &Context<'_>, id: ID) -> Result<Option<Node>, ApiError> {
        let loaded = ctx.data_unchecked::<ByIdLoader>().load_one(resource_id(&id)?).await?;
        Ok(loaded.map(|(position, resource)| {
            note(ctx, position);
            Node::Resource(resource)
        }))
    }
}
