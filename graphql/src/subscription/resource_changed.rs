//! Watching resources.

use super::follow::{batches, start};
use super::shared::Batch;
use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::{DateTime, Phase, Position, Resource, ResourceFilter};
use async_graphql::futures_util::{Stream, StreamExt, stream};
use async_graphql::{Context, ID, SimpleObject, Subscription};
use converge_projections::catch_up::resource_list::Filter;
use std::sync::Arc;

#[derive(Default)]
pub struct ResourceChangedSubscription;

/// A resource right after one of its events.
#[derive(SimpleObject)]
pub struct ResourceChange {
    /// Of the event. Give it as `from` to go on behind it.
    position: Position,
    at: DateTime,
    event_type: String,
    id: ID,
    kind: String,
    name: String,
    phase: Phase,
    /// As of the event; null once it is deleted.
    resource: Option<Resource>,
    /// The resource matched before this event and does not any more: forget it.
    left_filter: bool,
}

#[Subscription]
impl ResourceChangedSubscription {
    /// Every event of the resources a filter admits, behind `from` (default: from now on), in order, each
    /// once; and the one event with which a resource leaves the filter.
    async fn resource_changed(
        &self,
        ctx: &Context<'_>,
        filter: Option<ResourceFilter>,
        from: Option<Position>,
    ) -> Result<impl Stream<Item = Result<ResourceChange, ApiError>> + use<>, ApiError> {
        let state = ctx.data_unchecked::<ApiState>().clone();
        let filter = Arc::new(ResourceFilter::compile(filter)?);
        let after = start(&state, from).await?;
        Ok(batches(&state, after)
            .then(move |batch| {
                let (state, filter) = (state.clone(), Arc::clone(&filter));
                async move {
                    let batch = state.watched.batch(batch?).await?;
                    changes(&state, &filter, &batch).await
                }
            })
            .flat_map(|changes| match changes {
                Ok(changes) => stream::iter(changes.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(error) => stream::iter(vec![Err(error)]),
            }))
    }
}

async fn changes(state: &ApiState, filter: &Filter, batch: &Batch) -> Result<Vec<ResourceChange>, ApiError> {
    let possible = batch.possible(filter);
    let steps = state.watched.steps(batch, &possible).await?;
    let mut changes = Vec::new();
    for (event, step) in possible.iter().filter_map(|index| batch.event(*index)).zip(steps) {
        let matches = filter.admits(&step.after);
        let matched = step.before.as_deref().is_some_and(|before| filter.admits(before));
        if !matches && !matched {
            continue;
        }
        let identity = step.after.id();
        changes.push(ResourceChange {
            position: event.position.into(),
            at: DateTime(event.committed_at),
            event_type: event.event.event_type(),
            id: ID::from(identity.id.to_string()),
            kind: identity.kind.clone(),
            name: identity.name.clone(),
            phase: step.after.phase().into(),
            resource: step.after.exists().then(|| Resource::new(Arc::clone(&step.after))),
            left_filter: !matches,
        });
    }
    Ok(changes)
}
