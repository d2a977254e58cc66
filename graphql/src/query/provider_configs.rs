//! Provider configs.

use crate::consistency::{heads_position, note};
use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::ProviderConfig;
use async_graphql::{Context, Object};
use converge_domain::AggregateType;

#[derive(Default)]
pub struct ProviderConfigsQuery;

#[Object]
impl ProviderConfigsQuery {
    /// Provider configs by kind, version and name.
    #[graphql(complexity = "50 * child_complexity")]
    async fn provider_configs(
        &self,
        ctx: &Context<'_>,
        kind: Option<String>,
    ) -> Result<Vec<ProviderConfig>, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        note(ctx, heads_position(state, None).await?);
        let heads = state.store.heads_of_type(AggregateType::ProviderConfig).await?;
        let mut configs: Vec<ProviderConfig> = heads
            .iter()
            .filter_map(ProviderConfig::from_head)
            .filter(|config| kind.as_ref().is_none_or(|kind| *kind == config.kind))
            .collect();
        configs.sort_by(|a, b| (&a.kind, a.kind_version, &a.name).cmp(&(&b.kind, b.kind_version, &b.name)));
        Ok(configs)
    }
}
