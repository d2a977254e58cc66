//! Watching the log.

use super::follow::{batches, start};
use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::{Event, EventFilter, Position, resource_id};
use async_graphql::futures_util::{Stream, StreamExt, stream};
use async_graphql::{Context, Subscription};
use converge_domain::AggregateId;

#[derive(Default)]
pub struct EventsSubscription;

#[Subscription]
impl EventsSubscription {
    /// Events behind `from` (default: from now on), in order, each once.
    async fn events(
        &self,
        ctx: &Context<'_>,
        filter: Option<EventFilter>,
        from: Option<Position>,
    ) -> Result<impl Stream<Item = Result<Event, ApiError>> + use<>, ApiError> {
        let state = ctx.data_unchecked::<ApiState>().clone();
        let filter = filter.unwrap_or_default();
        let resource: Option<AggregateId> =
            filter.resource.as_ref().map(resource_id).transpose()?.map(Into::into);
        let after = start(&state, from).await?;
        Ok(batches(&state, after)
            .then(move |batch| {
                let (state, filter) = (state.clone(), filter.clone());
                async move {
                    let batch = state.watched.batch(batch?).await?;
                    let mut events = Vec::new();
                    for event in batch.events() {
                        let named = batch.named(event.aggregate_id);
                        if resource.is_none_or(|id| event.aggregate_id == id)
                            && filter.admits(named.map(AsRef::as_ref))
                        {
                            events.push(Event::new(event.clone(), named.cloned()));
                        }
                    }
                    Ok::<_, ApiError>(events)
                }
            })
            .flat_map(|events| match events {
                Ok(events) => stream::iter(events.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(error) => stream::iter(vec![Err(error)]),
            }))
    }
}
