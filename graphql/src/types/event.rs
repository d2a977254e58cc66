//! Events, as the log holds them.

use super::{DateTime, Json, Position};
use crate::directory::Named;
use crate::error::ApiError;
use async_graphql::{ID, InputObject, Object, SimpleObject};
use converge_event_store::StoredEvent;
use std::sync::Arc;

/// One fact of the log.
#[derive(Clone)]
pub struct Event {
    stored: StoredEvent,
    named: Option<Arc<Named>>,
}

impl Event {
    pub const fn new(stored: StoredEvent, named: Option<Arc<Named>>) -> Self {
        Self { stored, named }
    }
}

#[Object]
impl Event {
    /// Its place in the log.
    async fn position(&self) -> Position {
        self.stored.position.into()
    }

    /// When it was committed.
    async fn at(&self) -> DateTime {
        DateTime(self.stored.committed_at)
    }

    async fn aggregate_type(&self) -> &'static str {
        self.stored.aggregate_type.as_str()
    }

    async fn aggregate_id(&self) -> ID {
        ID::from(self.stored.aggregate_id.to_string())
    }

    /// Its place in its own aggregate's stream, from 1.
    async fn sequence(&self) -> Position {
        Position(self.stored.sequence.0)
    }

    async fn event_type(&self) -> String {
        self.stored.event.event_type()
    }

    /// The payload as stored.
    async fn payload(&self) -> Result<Json, ApiError> {
        let unreadable = |error: serde_json::Error| ApiError::unavailable(error.to_string());
        let text = self.stored.event.to_json().map_err(unreadable)?;
        serde_json::from_str(&text).map(Json).map_err(unreadable)
    }

    /// Who caused it, and under which request.
    async fn metadata(&self) -> Result<Json, ApiError> {
        Json::of(&*self.stored.metadata)
    }

    /// The resource's kind; for other aggregates the word of their type.
    async fn kind(&self) -> Option<&str> {
        self.named.as_deref().map(|named| named.kind.as_str())
    }

    /// The aggregate's name.
    async fn name(&self) -> Option<&str> {
        self.named.as_deref().map(|named| named.name.as_str())
    }
}

/// Which events. Everything given must hold.
#[derive(InputObject, Clone, Debug, Default)]
pub struct EventFilter {
    /// Of this resource.
    pub resource: Option<ID>,
    /// Of resources of this kind; or the word of another aggregate type.
    pub kind: Option<String>,
    /// Of whatever bears or bore this name.
    pub name: Option<String>,
}

impl EventFilter {
    /// The part that names tell; `resource` is compared by id.
    pub fn admits(&self, named: Option<&Named>) -> bool {
        let matches = |wanted: &Option<String>, have: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| have == Some(wanted))
        };
        matches(&self.kind, named.map(|named| named.kind.as_str()))
            && matches(&self.name, named.map(|named| named.name.as_str()))
    }
}

/// A run of events.
#[derive(SimpleObject)]
pub struct EventPage {
    pub nodes: Vec<Event>,
    /// Give it as `after` to go on. May lie behind the last node: what is between did not match.
    pub end_position: Position,
    /// False: nothing more matched when this was read.
    pub has_more: bool,
    /// The end of the log when this was read.
    pub position: Position,
}
