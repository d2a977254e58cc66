//! The four aggregates behind one door: the batch executor drives commands of any of them.

use crate::ids::AggregateId;
use crate::kind::{KindCommand, KindError, KindEvent, KindState};
use crate::provider_config::{
    ProviderConfigCommand, ProviderConfigError, ProviderConfigEvent, ProviderConfigState,
};
use crate::reactor_binding::{
    ReactorBindingCommand, ReactorBindingError, ReactorBindingEvent, ReactorBindingState,
};
use crate::resource::{ResourceCommand, ResourceError, ResourceEvent, ResourceState};
use cqrs_es::event_sink::EventSink;
use cqrs_es::{Aggregate, DomainEvent};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The four types of aggregate, with the word each has in the log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AggregateType {
    Resource,
    Kind,
    ProviderConfig,
    ReactorBinding,
}

impl AggregateType {
    /// The word in `events.aggregate_type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Kind => "kind",
            Self::ProviderConfig => "provider_config",
            Self::ReactorBinding => "reactor_binding",
        }
    }

    /// The type that `word` names in the log.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Resource, Self::Kind, Self::ProviderConfig, Self::ReactorBinding]
            .into_iter()
            .find(|aggregate_type| aggregate_type.as_str() == word)
    }
}

/// A folded aggregate; cheap to clone.
#[derive(Clone, PartialEq, Debug)]
pub enum AnyState {
    Resource(Arc<ResourceState>),
    Kind(Arc<KindState>),
    ProviderConfig(Arc<ProviderConfigState>),
    ReactorBinding(Arc<ReactorBindingState>),
}

/// A command to any aggregate.
#[derive(Clone, Debug)]
pub enum AnyCommand {
    Resource(ResourceCommand),
    Kind(KindCommand),
    ProviderConfig(ProviderConfigCommand),
    ReactorBinding(ReactorBindingCommand),
}

/// An event of any aggregate.
#[derive(Clone, PartialEq, Debug)]
pub enum AnyEvent {
    Resource(ResourceEvent),
    Kind(KindEvent),
    ProviderConfig(ProviderConfigEvent),
    ReactorBinding(ReactorBindingEvent),
}

/// A refusal by domain code: known failed, nothing stored.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum DomainError {
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error(transparent)]
    Kind(#[from] KindError),
    #[error(transparent)]
    ProviderConfig(#[from] ProviderConfigError),
    #[error(transparent)]
    ReactorBinding(#[from] ReactorBindingError),
}

/// A stored event that this build cannot read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{aggregate_type} event `{event_type}` version {event_version} cannot be decoded: {reason}")]
pub struct DecodeError {
    pub aggregate_type: String,
    pub event_type: String,
    pub event_version: String,
    pub reason: String,
}

impl AnyState {
    /// The state before any event.
    pub fn empty(aggregate_type: AggregateType) -> Self {
        match aggregate_type {
            AggregateType::Resource => Self::Resource(Arc::default()),
            AggregateType::Kind => Self::Kind(Arc::default()),
            AggregateType::ProviderConfig => Self::ProviderConfig(Arc::default()),
            AggregateType::ReactorBinding => Self::ReactorBinding(Arc::default()),
        }
    }

    pub const fn aggregate_type(&self) -> AggregateType {
        match self {
            Self::Resource(_) => AggregateType::Resource,
            Self::Kind(_) => AggregateType::Kind,
            Self::ProviderConfig(_) => AggregateType::ProviderConfig,
            Self::ReactorBinding(_) => AggregateType::ReactorBinding,
        }
    }

    /// The resource inside, if it is one.
    pub const fn as_resource(&self) -> Option<&Arc<ResourceState>> {
        match self {
            Self::Resource(state) => Some(state),
            _ => None,
        }
    }

    /// Reads a stored head state.
    ///
    /// # Errors
    /// When the stored text is not a state of this build; the head must then be rebuilt from its stream.
    pub fn from_json(aggregate_type: AggregateType, text: &str) -> Result<Self, serde_json::Error> {
        Ok(match aggregate_type {
            AggregateType::Resource => Self::Resource(serde_json::from_str(text)?),
            AggregateType::Kind => Self::Kind(serde_json::from_str(text)?),
            AggregateType::ProviderConfig => Self::ProviderConfig(serde_json::from_str(text)?),
            AggregateType::ReactorBinding => Self::ReactorBinding(serde_json::from_str(text)?),
        })
    }

    /// The text stored in the head.
    ///
    /// # Errors
    /// Never for states this crate makes; serde's signature keeps the possibility.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Resource(state) => serde_json::to_string(state),
            Self::Kind(state) => serde_json::to_string(state),
            Self::ProviderConfig(state) => serde_json::to_string(state),
            Self::ReactorBinding(state) => serde_json::to_string(state),
        }
    }

    /// Decides `command` on this state: the events, with the state already moved past them.
    ///
    /// # Errors
    /// The domain's refusal; the state is then as it was.
    pub async fn decide(&mut self, command: AnyCommand) -> Result<Vec<AnyEvent>, DomainError> {
        match (self, command) {
            (Self::Resource(state), AnyCommand::Resource(command)) => {
                Ok(drive(state, command).await?.into_iter().map(AnyEvent::Resource).collect())
            }
            (Self::Kind(state), AnyCommand::Kind(command)) => {
                Ok(drive(state, command).await?.into_iter().map(AnyEvent::Kind).collect())
            }
            (Self::ProviderConfig(state), AnyCommand::ProviderConfig(command)) => {
                Ok(drive(state, command).await?.into_iter().map(AnyEvent::ProviderConfig).collect())
            }
            (Self::ReactorBinding(state), AnyCommand::ReactorBinding(command)) => {
                Ok(drive(state, command).await?.into_iter().map(AnyEvent::ReactorBinding).collect())
            }
            (state, command) => {
                unreachable!("a {:?} command cannot go to a {:?}", command, state.aggregate_type())
            }
        }
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &AnyEvent) {
        match (self, event) {
            (Self::Resource(state), AnyEvent::Resource(event)) => Arc::make_mut(state).apply(event.clone()),
            (Self::Kind(state), AnyEvent::Kind(event)) => Arc::make_mut(state).apply(event.clone()),
            (Self::ProviderConfig(state), AnyEvent::ProviderConfig(event)) => {
                Arc::make_mut(state).apply(event.clone());
            }
            (Self::ReactorBinding(state), AnyEvent::ReactorBinding(event)) => {
                Arc::make_mut(state).apply(event.clone());
            }
            (state, event) => {
                unreachable!("a {:?} event cannot go to a {:?}", event, state.aggregate_type())
            }
        }
    }
}

/// Runs a command on a copy, so that a refusal leaves the shared state untouched.
async fn drive<A>(state: &mut Arc<A>, command: A::Command) -> Result<Vec<A::Event>, A::Error>
where
    A: Aggregate<Services = ()> + Clone,
{
    let mut next = A::clone(state);
    let sink = EventSink::default();
    next.handle(command, &(), &sink).await?;
    let events = sink.collect().await;
    if !events.is_empty() {
        *state = Arc::new(next);
    }
    Ok(events)
}

impl AnyCommand {
    pub const fn aggregate_type(&self) -> AggregateType {
        match self {
            Self::Resource(_) => AggregateType::Resource,
            Self::Kind(_) => AggregateType::Kind,
            Self::ProviderConfig(_) => AggregateType::ProviderConfig,
            Self::ReactorBinding(_) => AggregateType::ReactorBinding,
        }
    }
}

impl AnyEvent {
    pub const fn aggregate_type(&self) -> AggregateType {
        match self {
            Self::Resource(_) => AggregateType::Resource,
            Self::Kind(_) => AggregateType::Kind,
            Self::ProviderConfig(_) => AggregateType::ProviderConfig,
            Self::ReactorBinding(_) => AggregateType::ReactorBinding,
        }
    }

    /// The event's type word in the log.
    pub fn event_type(&self) -> String {
        match self {
            Self::Resource(event) => event.event_type(),
            Self::Kind(event) => event.event_type(),
            Self::ProviderConfig(event) => event.event_type(),
            Self::ReactorBinding(event) => event.event_type(),
        }
    }

    /// The event's version word in the log.
    pub fn event_version(&self) -> String {
        match self {
            Self::Resource(event) => event.event_version(),
            Self::Kind(event) => event.event_version(),
            Self::ProviderConfig(event) => event.event_version(),
            Self::ReactorBinding(event) => event.event_version(),
        }
    }

    /// The payload text stored in the log, hashed as it is.
    ///
    /// # Errors
    /// Never for events this crate makes.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Resource(event) => serde_json::to_string(event),
            Self::Kind(event) => serde_json::to_string(event),
            Self::ProviderConfig(event) => serde_json::to_string(event),
            Self::ReactorBinding(event) => serde_json::to_string(event),
        }
    }

    /// The one decode function of every read path; upcasters hook in here.
    ///
    /// # Errors
    /// For an event type or version that this build does not know.
    pub fn decode(
        aggregate_type: &str,
        event_type: &str,
        event_version: &str,
        payload: &str,
    ) -> Result<Self, DecodeError> {
        let fail = |reason: String| DecodeError {
            aggregate_type: aggregate_type.to_owned(),
            event_type: event_type.to_owned(),
            event_version: event_version.to_owned(),
            reason,
        };
        if event_version != "1" {
            return Err(fail("this build knows version 1 only".to_owned()));
        }
        let decoded = match AggregateType::parse(aggregate_type) {
            Some(AggregateType::Resource) => serde_json::from_str(payload).map(Self::Resource),
            Some(AggregateType::Kind) => serde_json::from_str(payload).map(Self::Kind),
            Some(AggregateType::ProviderConfig) => serde_json::from_str(payload).map(Self::ProviderConfig),
            Some(AggregateType::ReactorBinding) => serde_json::from_str(payload).map(Self::ReactorBinding),
            None => return Err(fail("unknown aggregate type".to_owned())),
        };
        decoded.map_err(|error| fail(error.to_string()))
    }
}

/// Where an event or command belongs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    pub aggregate_type: AggregateType,
    pub id: AggregateId,
}
