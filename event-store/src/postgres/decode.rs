//! Rows back into events and heads.

use super::PgStore;
use super::errors::classify;
use crate::store::{Before, Head, Metadata, StoreError, StoredEvent};
use converge_domain::{AggregateId, AggregateType, AnyEvent, AnyState, Position, Sequence, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::sync::Arc;
use uuid::Uuid;

impl PgStore {
    /// One event row; every read path ends here, so that upcasters see every event.
    pub(super) fn decode_event(
        &self,
        row: &PgRow,
        committed_at: Timestamp,
    ) -> Result<StoredEvent, StoreError> {
        let text = |name| row.try_get::<String, _>(name).map_err(|error| classify(&error));
        let number =
            |name| row.try_get::<i64, _>(name).map(i64::unsigned_abs).map_err(|error| classify(&error));
        let aggregate_type = text("aggregate_type")?;
        let aggregate_id =
            AggregateId(row.try_get::<Uuid, _>("aggregate_id").map_err(|error| classify(&error))?);
        let event_type = text("event_type")?;
        let payload = self.codec.open(aggregate_id, &event_type, text("payload")?)?;
        let event = AnyEvent::decode(&aggregate_type, &event_type, &text("event_version")?, &payload)
            .map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let metadata: Metadata = serde_json::from_str(&text("metadata")?)
            .map_err(|error| StoreError::Corrupt(format!("metadata: {error}")))?;
        Ok(StoredEvent {
            position: Position(number("position")?),
            aggregate_type: event.aggregate_type(),
            aggregate_id,
            sequence: Sequence(number("sequence")?),
            event,
            metadata: Arc::new(metadata),
            committed_at,
            before: Before::default(),
        })
    }

    /// One head row. A state that this build cannot read was written by another build; the log says the same, so
    /// it is folded instead.
    pub(super) async fn decode_head(&self, row: &PgRow) -> Result<Head, StoreError> {
        let corrupt = |error: sqlx::Error| classify(&error);
        let id = AggregateId(row.try_get::<Uuid, _>("id").map_err(corrupt)?);
        let word: String = row.try_get("aggregate_type").map_err(corrupt)?;
        let sequence = Sequence(row.try_get::<i64, _>("sequence").map_err(corrupt)?.unsigned_abs());
        let text: String = row.try_get("state").map_err(corrupt)?;
        let aggregate_type = AggregateType::parse(&word)
            .ok_or_else(|| StoreError::Corrupt(format!("unknown aggregate type `{word}`")))?;
        let state = match AnyState::from_json(aggregate_type, &text) {
            Ok(state) => state,
            Err(error) => {
                tracing::info!(%id, %error, "folding a head whose stored state is of another build");
                self.fold(aggregate_type, id, sequence).await?
            }
        };
        Ok(Head { id, sequence, state })
    }

    async fn fold(&self, of: AggregateType, id: AggregateId, upto: Sequence) -> Result<AnyState, StoreError> {
        const PAGE: u32 = 1000;
        let mut state = AnyState::empty(of);
        let mut at = Sequence(0);
        while at < upto {
            let events = self.stream(id, at, PAGE).await?;
            if events.is_empty() {
                return Err(StoreError::Corrupt(format!(
                    "the stream of {id} ends at {at}, its head is at {upto}"
                )));
            }
            for event in events.iter().take_while(|event| event.sequence <= upto) {
                state.apply(&event.event);
                at = event.sequence;
            }
        }
        Ok(state)
    }
}
