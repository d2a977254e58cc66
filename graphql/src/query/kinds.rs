//! Kinds.

use crate::consistency::{heads_position, note};
use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::Kind;
use async_graphql::{Context, Object};
use converge_domain::{AggregateType, KindRef};

#[derive(Default)]
pub struct KindsQuery;

#[Object]
impl KindsQuery {
    /// Every version of every kind, in order.
    #[graphql(complexity = "50 * child_complexity")]
    async fn kinds(&self, ctx: &Context<'_>) -> Result<Vec<Kind>, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        note(ctx, heads_position(state, None).await?);
        let heads = state.store.heads_of_type(AggregateType::Kind).await?;
        let mut kinds = heads
            .iter()
            .filter_map(|head| Kind::from_head(head).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        kinds.sort_by(|a, b| (&a.kind, a.kind_version).cmp(&(&b.kind, b.kind_version)));
        Ok(kinds)
    }

    /// One version of a kind.
    async fn kind(
        &self,
        ctx: &Context<'_>,
        kind: String,
        kind_version: i32,
    ) -> Result<Option<Kind>, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        let version = u16::try_from(kind_version)
            .map_err(|_| ApiError::bad_request(format!("{kind_version} is no kind version")))?;
        note(ctx, heads_position(state, None).await?);
        let heads = state.store.heads(&[KindRef::new(kind, version).aggregate_id()]).await?;
        heads.first().map_or(Ok(None), Kind::from_head)
    }
}
