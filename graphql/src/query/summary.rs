//! Counts.

use crate::consistency::{list_at_least, note};
use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::{Summary, resource_id};
use async_graphql::{Context, ID, Object};

#[derive(Default)]
pub struct SummaryQuery;

#[Object]
impl SummaryQuery {
    /// How many resources of each kind are in each phase: in one tree, or everywhere.
    #[graphql(complexity = "50 * child_complexity")]
    async fn summary(&self, ctx: &Context<'_>, root: Option<ID>) -> Result<Summary, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        let root = root.as_ref().map(resource_id).transpose()?;
        let answer = list_at_least(state, None, || state.list.tally(root)).await?;
        note(ctx, answer.position);
        Ok(answer.into())
    }
}
