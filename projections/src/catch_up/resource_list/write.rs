//! The projection: loads what a batch needs, folds, stores in a few statements.

use super::basis::Basis;
use super::fold::{Birth, Changes, Stored, fold, needed};
use super::row::Row;
use crate::catch_up::{CatchUp, ProjectError};
use async_trait::async_trait;
use converge_domain::resource::Phase;
use converge_domain::{Position, ResourceId};
use converge_event_store::StoredEvent;
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// Keeps `projections.resource_list`, `resource_phase`, `resource_gone`, `phase_count` and `tree_phase_count`.
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
        2
    }

    async fn reset(&self, tx: &mut PgConnection) -> Result<(), ProjectError> {
        sqlx::query(include_str!("reset.sql")).execute(tx).await?;
        Ok(())
    }

    async fn apply(&self, tx: &mut PgConnection, events: &[StoredEvent]) -> Result<(), ProjectError> {
        let Some(first) = events.first() else { return Ok(()) };
        let needed = needed(events);
        let stored = Stored {
            rows: load(tx, &needed.rows, first.position).await?,
            paths: paths(tx, &needed.owners).await?,
        };
        store(tx, fold(stored, events)?, first.position).await
    }
}

async fn load(
    tx: &mut PgConnection,
    ids: &BTreeSet<ResourceId>,
    position: Position,
) -> Result<Vec<Row>, ProjectError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows: Vec<(Uuid, String, String, String, Option<Uuid>, String)> =
        sqlx::query_as(include_str!("load.sql")).bind(ids).fetch_all(&mut *tx).await?;
    rows.into_iter()
        .map(|(id, phase, kind, name, root, basis)| {
            let unreadable = |reason: String| ProjectError::Poison {
                position,
                reason: format!("the row of resource {id} cannot be read: {reason}"),
            };
            let phase = phase.parse().map_err(unreadable)?;
            let basis = serde_json::from_str(&basis).map_err(|error| unreadable(error.to_string()))?;
            Ok(Row { id: ResourceId(id), kind, name, root: root.map(ResourceId), phase, basis })
        })
        .collect()
}

async fn paths(
    tx: &mut PgConnection,
    owners: &BTreeSet<ResourceId>,
) -> Result<HashMap<ResourceId, String>, ProjectError> {
    if owners.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Uuid> = owners.iter().map(|id| id.0).collect();
    let rows: Vec<(Uuid, String)> =
        sqlx::query_as(include_str!("paths.sql")).bind(ids).fetch_all(&mut *tx).await?;
    Ok(rows.into_iter().map(|(id, path)| (ResourceId(id), path)).collect())
}

async fn store(tx: &mut PgConnection, changes: Changes, position: Position) -> Result<(), ProjectError> {
    if !changes.births.is_empty() {
        insert(tx, &changes.births, position).await?;
    }
    if !changes.moves.is_empty() {
        update(tx, &changes.moves, position).await?;
    }
    if !changes.labels.is_empty() {
        let labels = changes.labels.iter().map(|(_, labels)| label_text(labels, position));
        sqlx::query(include_str!("label.sql"))
            .bind(changes.labels.iter().map(|(id, _)| id.0).collect::<Vec<_>>())
            .bind(labels.collect::<Result<Vec<_>, _>>()?)
            .execute(&mut *tx)
            .await?;
    }
    if !changes.ends.is_empty() {
        sqlx::query(include_str!("remove.sql"))
            .bind(changes.ends.iter().map(|id| id.0).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await?;
    }
    if !changes.brief.is_empty() {
        let who = || changes.brief.iter().map(|(identity, _)| identity);
        sqlx::query(include_str!("remember.sql"))
            .bind(who().map(|identity| identity.id.0).collect::<Vec<_>>())
            .bind(who().map(|identity| identity.kind.as_str()).collect::<Vec<_>>())
            .bind(who().map(|identity| identity.name.as_str()).collect::<Vec<_>>())
            .bind(who().map(|identity| array_literal(&identity.ancestors)).collect::<Vec<_>>())
            .bind(changes.brief.iter().map(|(_, at)| at.0.cast_signed()).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await?;
    }
    count(tx, &changes).await
}

async fn insert(tx: &mut PgConnection, births: &[Birth], position: Position) -> Result<(), ProjectError> {
    fn column<'a, T>(births: &'a [Birth], read: impl Fn(&'a Birth) -> T) -> Vec<T> {
        births.iter().map(read).collect()
    }
    let labels =
        births.iter().map(|birth| label_text(&birth.labels, position)).collect::<Result<Vec<_>, _>>();
    let bases = births.iter().map(|birth| basis_text(&birth.basis, position)).collect::<Result<Vec<_>, _>>();
    sqlx::query(include_str!("insert.sql"))
        .bind(column(births, |birth| birth.identity.id.0))
        .bind(column(births, |birth| birth.identity.kind.as_str()))
        .bind(column(births, |birth| birth.identity.name.as_str()))
        .bind(column(births, |birth| birth.identity.owner().map(|id| id.0)))
        .bind(column(births, |birth| birth.identity.root().0))
        .bind(column(births, |birth| array_literal(&birth.identity.ancestors)))
        .bind(column(births, |birth| birth.path.as_str()))
        .bind(labels?)
        .bind(column(births, |birth| birth.created_position.0.cast_signed()))
        .bind(column(births, |birth| birth.phase.as_str()))
        .bind(bases?)
        .execute(&mut *tx)
        .await?;
    Ok(())
}

async fn update(
    tx: &mut PgConnection,
    moves: &[(ResourceId, Phase, Basis)],
    position: Position,
) -> Result<(), ProjectError> {
    let bases = moves.iter().map(|(_, _, basis)| basis_text(basis, position)).collect::<Result<Vec<_>, _>>();
    sqlx::query(include_str!("move.sql"))
        .bind(moves.iter().map(|(id, _, _)| id.0).collect::<Vec<_>>())
        .bind(moves.iter().map(|(_, phase, _)| phase.as_str()).collect::<Vec<_>>())
        .bind(bases?)
        .execute(&mut *tx)
        .await?;
    Ok(())
}

async fn count(tx: &mut PgConnection, changes: &Changes) -> Result<(), ProjectError> {
    if !changes.tally.is_empty() {
        let tally = || changes.tally.iter();
        sqlx::query(include_str!("count.sql"))
            .bind(tally().map(|((kind, _), _)| kind.as_str()).collect::<Vec<_>>())
            .bind(tally().map(|((_, phase), _)| *phase).collect::<Vec<_>>())
            .bind(tally().map(|(_, difference)| *difference).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await?;
    }
    if !changes.tree_tally.is_empty() {
        let tally = || changes.tree_tally.iter();
        sqlx::query(include_str!("count_tree.sql"))
            .bind(tally().map(|((root, _, _), _)| root.0).collect::<Vec<_>>())
            .bind(tally().map(|((_, kind, _), _)| kind.as_str()).collect::<Vec<_>>())
            .bind(tally().map(|((_, _, phase), _)| *phase).collect::<Vec<_>>())
            .bind(tally().map(|(_, difference)| *difference).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

/// None where there are none: the label index then has no entry for the row.
fn label_text(labels: &BTreeMap<String, String>, position: Position) -> Result<Option<String>, ProjectError> {
    if labels.is_empty() { Ok(None) } else { text(labels, position).map(Some) }
}

fn basis_text(basis: &Basis, position: Position) -> Result<String, ProjectError> {
    text(basis, position)
}

/// Never fails for what this module writes; serde's signature keeps the possibility.
fn text(value: &impl serde::Serialize, position: Position) -> Result<String, ProjectError> {
    serde_json::to_string(value).map_err(|error| ProjectError::Poison { position, reason: error.to_string() })
}

fn array_literal(ids: &[ResourceId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("{{{}}}", ids.join(","))
}
