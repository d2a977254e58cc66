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
                    let batch = batch?;
                    let wanted: Vec<_> = batch
                        .iter()
                        .filter(|event| resource.is_none_or(|id| event.aggregate_id == id))
                        .cloned()
                        .collect();
                    let names = state.directory.name(&wanted).await?;
                    let mut events = Vec::with_capacity(wanted.len());
                    for event in wanted {
                        let named = names.get(&event.aggregate_id).cloned();
                        if filter.admits(named.as_deref()) {
                            events.push(Event::new(event, named));
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
