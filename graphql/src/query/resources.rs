//! Lists.

use crate::consistency::{list_at_least, note};
use crate::error::ApiError;
use crate::limits::{PAGE_MAX, page_size, weight};
use crate::state::ApiState;
use crate::types::{Position, ResourceConnection, ResourceFilter, decode_key};
use async_graphql::{Context, Object};

#[derive(Default)]
pub struct ResourcesQuery;

#[Object]
impl ResourcesQuery {
    /// Live resources in (kind, name) order. Resources that come or go between two pages shift nothing.
    #[graphql(complexity = "weight(first, 100, child_complexity)")]
    async fn resources(
        &self,
        ctx: &Context<'_>,
        filter: Option<ResourceFilter>,
        #[graphql(default_with = "Some(100)")] first: Option<i32>,
        after: Option<String>,
        min_position: Option<Position>,
    ) -> Result<ResourceConnection, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        let filter = ResourceFilter::compile(filter)?;
        let limit = page_size(first, 100, PAGE_MAX)?;
        let after = decode_key(after.as_deref())?;
        let answer = list_at_least(state, min_position.map(Into::into), || {
            state.list.page(&filter, after.as_ref(), limit)
        })
        .await?;
        note(ctx, answer.position);
        Ok(ResourceConnection::new(answer, after.as_ref()))
    }
}
