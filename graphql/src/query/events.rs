//! The log in pages.

use crate::consistency::note;
use crate::error::ApiError;
use crate::limits::{NAME_BEARERS_MAX, PAGE_MAX, SCAN_EVENTS_MAX, page_size, weight};
use crate::state::ApiState;
use crate::types::{Event, EventFilter, EventPage, Position, resource_id};
use async_graphql::{Context, Object};
use converge_domain::{AggregateId, Position as LogPosition, ResourceRef, Sequence};
use converge_event_store::{Store, StoredEvent};
use std::collections::BTreeSet;

#[derive(Default)]
pub struct EventsQuery;

#[Object]
impl EventsQuery {
    /// Events behind `after`, in order. A filter that no index serves looks through a bounded run of the
    /// log: the page may then be short or empty and still have more behind it.
    #[graphql(complexity = "weight(first, 100, child_complexity)")]
    async fn events(
        &self,
        ctx: &Context<'_>,
        filter: Option<EventFilter>,
        after: Option<Position>,
        #[graphql(default_with = "Some(100)")] first: Option<i32>,
    ) -> Result<EventPage, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        let limit = page_size(first, 100, PAGE_MAX)?;
        let after = LogPosition(after.map_or(0, |after| after.0));
        let filter = filter.unwrap_or_default();
        let position = state.store.log_head().await?.position;
        note(ctx, position);
        let run = match filtered_ids(state, &filter).await? {
            Some(ids) => streams(state, &ids, after, limit).await?,
            None => scan(state, &filter, after, limit).await?,
        };
        let names = state.directory.name(&run.events).await?;
        let nodes = run
            .events
            .into_iter()
            .map(|event| {
                let named = names.get(&event.aggregate_id).cloned();
                Event::new(event, named)
            })
            .collect();
        Ok(EventPage { nodes, end_position: run.end.into(), has_more: run.more, position: position.into() })
    }
}

/// Events and where they end.
struct Run {
    events: Vec<StoredEvent>,
    end: LogPosition,
    more: bool,
}

/// The aggregates a filter names, if it names any: by id, or by kind and name every bearer of that name,
/// the present one and those before it. None: the filter is about kinds or names in general.
///
/// # Errors
/// `BAD_REQUEST` for an id that is none; `UNAVAILABLE` when a lookup fails.
async fn filtered_ids(
    state: &ApiState,
    filter: &EventFilter,
) -> Result<Option<BTreeSet<AggregateId>>, ApiError> {
    if let Some(id) = &filter.resource {
        return Ok(Some(BTreeSet::from([resource_id(id)?.into()])));
    }
    let (Some(kind), Some(name)) = (&filter.kind, &filter.name) else { return Ok(None) };
    if converge_domain::AggregateType::parse(kind).is_some() {
        // Words of other aggregate types are no kinds; those few events are found by looking.
        return Ok(None);
    }
    let bearers = state.directory.named(kind, name, NAME_BEARERS_MAX).await?;
    let holder = state.store.names(&[ResourceRef::new(kind, name)]).await?;
    Ok(Some(bearers.into_iter().chain(holder.into_iter().map(|(_, id)| id)).collect()))
}

/// The streams of `ids`, merged by position.
async fn streams(
    state: &ApiState,
    ids: &BTreeSet<AggregateId>,
    after: LogPosition,
    limit: u32,
) -> Result<Run, ApiError> {
    let mut events = Vec::new();
    for id in ids {
        let start = sequence_behind(&*state.store, *id, after).await?;
        events.extend(state.store.read_stream(*id, start, limit + 1).await?);
    }
    events.sort_by_key(|event| event.position);
    let more = events.len() > limit as usize;
    events.truncate(limit as usize);
    let end = events.last().map_or(after, |event| event.position);
    Ok(Run { events, end, more })
}

/// The last sequence of a stream at or before a position: positions rise with sequences, so a doubling
/// search for an upper bound and a binary search below it find it in a few single-row reads.
async fn sequence_behind(
    store: &dyn Store,
    id: AggregateId,
    position: LogPosition,
) -> Result<Sequence, ApiError> {
    if position == LogPosition(0) {
        return Ok(Sequence(0));
    }
    let beyond = async |sequence: u64| -> Result<bool, ApiError> {
        // The event with exactly this sequence; a stream that ends before it counts as beyond.
        let found = store.read_stream(id, Sequence(sequence - 1), 1).await?;
        Ok(found.first().is_none_or(|event| event.position > position))
    };
    let mut high = 1;
    while !beyond(high).await? {
        high *= 2;
    }
    // Invariant: the event at `low` (0: none) is not beyond, the one at `high` is.
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if beyond(middle).await? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(Sequence(low))
}

/// The log itself, filtered; stops at the page size or after a bounded number of events looked at.
async fn scan(
    state: &ApiState,
    filter: &EventFilter,
    after: LogPosition,
    limit: u32,
) -> Result<Run, ApiError> {
    let unfiltered = filter.kind.is_none() && filter.name.is_none();
    let batch = if unfiltered { limit + 1 } else { PAGE_MAX.unsigned_abs() };
    let mut run = Run { events: Vec::new(), end: after, more: false };
    let mut looked_at = 0;
    loop {
        let events = state.store.read(run.end, batch).await?;
        let last_batch = events.len() < batch as usize;
        looked_at += events.len();
        let names = if unfiltered { Default::default() } else { state.directory.name(&events).await? };
        for event in events {
            let matches = unfiltered || filter.admits(names.get(&event.aggregate_id).map(|n| &**n));
            if matches && run.events.len() == limit as usize {
                run.more = true;
                return Ok(run);
            }
            run.end = event.position;
            if matches {
                run.events.push(event);
            }
        }
        if last_batch {
            return Ok(run);
        }
        if looked_at >= SCAN_EVENTS_MAX {
            run.more = true;
            return Ok(run);
        }
    }
}
