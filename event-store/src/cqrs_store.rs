//! cqrs-es's own framework over this log.
//!
//! The engine goes through [`Log`](crate::Log), which batches. This adapter is for code written against
//! cqrs-es: `CqrsFramework` and its queries run over it unchanged, and what they commit is in the same log,
//! under the same compare-and-set, with the same inline rows. It plugs in at `EventStore<A>`: the
//! JSON repository below would lose positions and types.

use crate::log::InlineProjector;
use crate::store::{Batch, ConflictKind, HeadChange, Metadata, NewEvent, Store, StoreError, StoredEvent};
use converge_domain::kind::{KindEvent, KindState};
use converge_domain::provider_config::{ProviderConfigEvent, ProviderConfigState};
use converge_domain::reactor_binding::{ReactorBindingEvent, ReactorBindingState};
use converge_domain::resource::{ResourceEvent, ResourceState};
use converge_domain::{Address, AggregateId, AggregateType, AnyEvent, AnyState, BatchId, Sequence};
use cqrs_es::{Aggregate, AggregateContext, AggregateError, EventEnvelope, EventStore};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// An aggregate of ours, by its place among [`AnyState`] and [`AnyEvent`].
pub trait Wrapped: Aggregate<Services = ()> + Clone + 'static {
    /// Its type in the log.
    const AGGREGATE_TYPE: AggregateType;
    /// Its state among all.
    fn wrap(self) -> AnyState;
    /// Its event among all.
    fn wrap_event(event: Self::Event) -> AnyEvent;
    /// Its event back; None for another aggregate's.
    fn unwrap_event(event: AnyEvent) -> Option<Self::Event>;
}

macro_rules! wrapped {
    ($($variant:ident: $state:ty, $event:ty;)*) => {$(
        impl Wrapped for $state {
            const AGGREGATE_TYPE: AggregateType = AggregateType::$variant;

            fn wrap(self) -> AnyState {
                AnyState::$variant(Arc::new(self))
            }

            fn wrap_event(event: $event) -> AnyEvent {
                AnyEvent::$variant(event)
            }

            fn unwrap_event(event: AnyEvent) -> Option<$event> {
                match event {
                    AnyEvent::$variant(event) => Some(event),
                    _ => None,
                }
            }
        }
    )*};
}

wrapped! {
    Resource: ResourceState, ResourceEvent;
    Kind: KindState, KindEvent;
    ProviderConfig: ProviderConfigState, ProviderConfigEvent;
    ReactorBinding: ReactorBindingState, ReactorBindingEvent;
}

/// An aggregate as loaded, for `CqrsFramework`.
pub struct Context<A> {
    id: AggregateId,
    /// As loaded.
    before: A,
    sequence: Sequence,
    /// Advanced by the command.
    aggregate: A,
}

impl<A: Aggregate> AggregateContext<A> for Context<A> {
    fn aggregate(&mut self) -> &mut A {
        &mut self.aggregate
    }
}

/// [`EventStore`] over a [`Store`].
#[derive(Clone)]
pub struct CqrsStore {
    store: Arc<dyn Store>,
    projector: Arc<dyn InlineProjector>,
}

impl CqrsStore {
    /// Commits through `store`, with the rows that `projector` derives.
    pub fn new(store: Arc<dyn Store>, projector: Arc<dyn InlineProjector>) -> Self {
        Self { store, projector }
    }

    async fn stream<A: Wrapped>(
        &self,
        id: AggregateId,
    ) -> Result<Vec<StoredEvent>, AggregateError<A::Error>> {
        const PAGE: u32 = 1000;
        let mut events: Vec<StoredEvent> = Vec::new();
        loop {
            let after = events.last().map_or(Sequence(0), |event| event.sequence);
            let page = self.store.read_stream(id, after, PAGE).await.map_err(unexpected)?;
            if page.is_empty() {
                return Ok(events);
            }
            events.extend(page);
        }
    }
}

fn unexpected<E: std::error::Error>(error: StoreError) -> AggregateError<E> {
    match error {
        StoreError::Corrupt(_) => AggregateError::DeserializationError(Box::new(error)),
        error => AggregateError::DatabaseConnectionError(Box::new(error)),
    }
}

fn parse<E: std::error::Error>(id: &str) -> Result<AggregateId, AggregateError<E>> {
    Uuid::parse_str(id).map(AggregateId).map_err(|error| AggregateError::UnexpectedError(Box::new(error)))
}

fn envelope<A: Wrapped>(event: StoredEvent) -> Option<EventEnvelope<A>> {
    Some(EventEnvelope {
        aggregate_id: event.aggregate_id.to_string(),
        sequence: usize::try_from(event.sequence.0).ok()?,
        payload: A::unwrap_event(event.event)?,
        metadata: event.metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
    })
}

impl<A> EventStore<A> for CqrsStore
where
    A: Wrapped,
    A::Event: Send,
    A::Error: Send + Sync,
{
    type AC = Context<A>;

    async fn load_events(
        &self,
        aggregate_id: &str,
    ) -> Result<Vec<EventEnvelope<A>>, AggregateError<A::Error>> {
        let events = self.stream::<A>(parse(aggregate_id)?).await?;
        Ok(events.into_iter().filter_map(envelope).collect())
    }

    async fn load_aggregate(&self, aggregate_id: &str) -> Result<Context<A>, AggregateError<A::Error>> {
        let id = parse(aggregate_id)?;
        let mut before = A::default();
        let mut sequence = Sequence(0);
        for event in self.stream::<A>(id).await? {
            sequence = event.sequence;
            if let Some(event) = A::unwrap_event(event.event) {
                before.apply(event);
            }
        }
        Ok(Context { id, aggregate: before.clone(), before, sequence })
    }

    async fn commit(
        &self,
        events: Vec<A::Event>,
        context: Context<A>,
        metadata: HashMap<String, String>,
    ) -> Result<Vec<EventEnvelope<A>>, AggregateError<A::Error>> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let Context { id, before, sequence, aggregate } = context;
        let address = Address { aggregate_type: A::AGGREGATE_TYPE, id };
        let (head, rows) = self.projector.project(address, &before.wrap(), &aggregate.wrap());
        let envelopes = (sequence.0 + 1..).zip(&events).map(|(sequence, event)| EventEnvelope {
            aggregate_id: id.to_string(),
            sequence: usize::try_from(sequence).unwrap_or(usize::MAX),
            payload: event.clone(),
            metadata: metadata.clone(),
        });
        let envelopes: Vec<EventEnvelope<A>> = envelopes.collect();
        let stored_metadata = Arc::new(metadata.into_iter().collect::<Metadata>());
        let last = Sequence(sequence.0 + events.len() as u64);
        let events = (sequence.0 + 1..).zip(events).map(|(sequence, event)| NewEvent {
            unit: 0,
            aggregate_type: A::AGGREGATE_TYPE,
            aggregate_id: id,
            sequence: Sequence(sequence),
            event: A::wrap_event(event),
            metadata: stored_metadata.clone(),
        });
        let change = HeadChange {
            unit: 0,
            aggregate_type: A::AGGREGATE_TYPE,
            expected: sequence,
            sequence: last,
            head,
            rows,
        };
        let batch = Batch {
            batch_id: BatchId(Uuid::now_v7()),
            events: events.collect(),
            heads: vec![change],
            guards: Vec::new(),
            commands: Vec::new(),
        };
        let appended = match self.store.append(&batch).await {
            Err(StoreError::OutcomeUnknown(batch_id)) => {
                match self.store.find_batch(batch_id).await.map_err(unexpected)? {
                    Some(appended) => appended,
                    None => return Err(AggregateError::AggregateConflict),
                }
            }
            result => result.map_err(unexpected)?,
        };
        match appended.conflicts.first().map(|conflict| conflict.kind) {
            None => Ok(envelopes),
            Some(ConflictKind::Head | ConflictKind::Guard) => Err(AggregateError::AggregateConflict),
            Some(ConflictKind::Name | ConflictKind::Duplicate) => {
                let error = StoreError::Data("the name is taken by another aggregate".to_owned());
                Err(AggregateError::UnexpectedError(Box::new(error)))
            }
        }
    }
}
