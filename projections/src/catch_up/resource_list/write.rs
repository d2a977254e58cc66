//! The projection: loads what a batch needs in one query, folds, stores in a few.

use super::fold::{Changes, fold, needed};
use super::row::Row;
use crate::catch_up::{CatchUp, ProjectError};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use converge_domain::{AggregateType, AnyState, Position, ResourceId, Timestamp};
use converge_event_store::StoredEvent;
use sqlx::PgConnection;
use std::sync::Arc;
use uuid::Uuid;

/// Keeps `projections.resource_list`, `resource_identity` and `phase_count`.
#[derive(Clone, Copy, Default, Debug)]
pub struct ResourceList;

impl ResourceList {
    /// Its name on the board and in the checkpoint table.
    pub const NAME: &'static str = "resource_list";
}

#[async_trait]
impl CatchUp for ResourceList {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn version(&self) -> i32 {
        1
    }

    async fn reset(&self, tx: &mut PgConnection) -> Result<(), ProjectError> {
        sqlx::query(include_str!("reset.sql")).execute(tx).await?;
        Ok(())
    }

    async fn apply(&self, tx: &mut PgConnection, events: &[StoredEvent]) -> Result<(), ProjectError> {
        let ids: Vec<Uuid> = needed(events).into_iter().map(|id| id.0).collect();
        let (Some(first), false) = (events.first(), ids.is_empty()) else { return Ok(()) };
        let stored = load(tx, &ids, first.position).await?;
        store(tx, fold(stored, events)?).await
    }
}

async fn load(tx: &mut PgConnection, ids: &[Uuid], position: Position) -> Result<Vec<Row>, ProjectError> {
    let rows: Vec<(String, String, i64)> =
        sqlx::query_as(include_str!("load.sql")).bind(ids).fetch_all(&mut *tx).await?;
    rows.into_iter()
        .map(|(state, path, updated)| {
            let state = parse_state(&state).map_err(|reason| ProjectError::Poison { position, reason })?;
            Ok(Row { state, path, updated_position: Position(updated.unsigned_abs()) })
        })
        .collect()
}

/// Reads a stored state back.
pub(super) fn parse_state(text: &str) -> Result<Arc<converge_domain::resource::ResourceState>, String> {
    match AnyState::from_json(AggregateType::Resource, text) {
        Ok(AnyState::Resource(state)) => Ok(state),
        Ok(_) => Err("a listed state is not a resource's".to_owned()),
        Err(error) => Err(format!("a listed state cannot be read: {error}")),
    }
}

async fn store(tx: &mut PgConnection, changes: Changes) -> Result<(), ProjectError> {
    if !changes.identities.is_empty() {
        let created = || changes.identities.iter().map(|(created, _)| created);
        sqlx::query(include_str!("remember.sql"))
            .bind(created().map(|c| c.id.0).collect::<Vec<_>>())
            .bind(created().map(|c| c.kind.clone()).collect::<Vec<_>>())
            .bind(created().map(|c| c.name.clone()).collect::<Vec<_>>())
            .bind(created().map(|c| array_literal(&c.ancestors)).collect::<Vec<_>>())
            .bind(changes.identities.iter().map(|(_, at)| at.0.cast_signed()).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await?;
    }
    if !changes.upserts.is_empty() {
        upsert(tx, &changes.upserts).await?;
    }
    if !changes.deletes.is_empty() {
        sqlx::query(include_str!("delete.sql"))
            .bind(changes.deletes.iter().map(|id| id.0).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await?;
    }
    if !changes.tally.is_empty() {
        let (keys, differences): (Vec<_>, Vec<i64>) = changes.tally.into_iter().unzip();
        let (kinds, phases): (Vec<String>, Vec<&str>) = keys.into_iter().unzip();
        sqlx::query(include_str!("tally.sql"))
            .bind(kinds)
            .bind(phases)
            .bind(differences)
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

async fn upsert(tx: &mut PgConnection, rows: &[Row]) -> Result<(), ProjectError> {
    fn column<T>(rows: &[Row], read: impl Fn(&Row) -> T) -> Vec<T> {
        rows.iter().map(read).collect()
    }
    let mut labels = Vec::with_capacity(rows.len());
    let mut states = Vec::with_capacity(rows.len());
    for row in rows {
        let unwritable = |error: serde_json::Error| ProjectError::Poison {
            position: row.updated_position,
            reason: format!("the state of resource {} cannot be written: {error}", row.id()),
        };
        labels.push(serde_json::to_string(&row.state.labels).map_err(unwritable)?);
        states.push(AnyState::Resource(Arc::clone(&row.state)).to_json().map_err(unwritable)?);
    }
    sqlx::query(include_str!("upsert.sql"))
        .bind(column(rows, |row| row.id().0))
        .bind(column(rows, |row| row.state.id().kind.clone()))
        .bind(column(rows, |row| row.state.kind_version.cast_signed()))
        .bind(column(rows, |row| row.state.id().name.clone()))
        .bind(labels)
        .bind(column(rows, |row| row.state.phase().as_str()))
        .bind(column(rows, |row| row.state.id().owner().map(|id| id.0)))
        .bind(column(rows, |row| row.state.id().root().0))
        .bind(column(rows, |row| i32::try_from(row.state.id().ancestors.len()).unwrap_or(i32::MAX)))
        .bind(column(rows, |row| array_literal(&row.state.id().ancestors)))
        .bind(column(rows, |row| row.path.clone()))
        .bind(column(rows, |row| instant(row.state.created_at)))
        .bind(column(rows, |row| row.updated_position.0.cast_signed()))
        .bind(states)
        .execute(&mut *tx)
        .await?;
    Ok(())
}

fn array_literal(ids: &[ResourceId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("{{{}}}", ids.join(","))
}

fn instant(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.0).unwrap_or_default()
}
