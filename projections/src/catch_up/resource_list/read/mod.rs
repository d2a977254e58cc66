//! Answers from the list. Each takes one snapshot, so rows and the position beside them belong together.

mod children;
mod filter;
mod page;
#[cfg(test)]
mod plans;
mod tally;
mod tree;

pub use filter::{Filter, Key};
pub use tally::PhaseTally;
pub use tree::{TreeKey, TreeRow};

use super::write::parse_state;
use crate::catch_up::{ResourceList, position_of};
use converge_domain::resource::ResourceState;
use converge_domain::{Position, ResourceId};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use std::sync::Arc;
use uuid::Uuid;

/// An answer and the position it is true at.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer<T> {
    /// The answer shows every event up to here and none behind.
    pub position: Position,
    pub value: T,
}

/// One listed resource.
#[derive(Clone, PartialEq, Debug)]
pub struct ListRow {
    pub state: Arc<ResourceState>,
    /// Position of the last event in `state`.
    pub updated_position: Position,
}

impl ListRow {
    /// Where it stands in a list.
    pub fn key(&self) -> Key {
        let identity = self.state.id();
        Key { kind: identity.kind.clone(), name: identity.name.clone(), id: identity.id }
    }
}

/// Reads the list. Cheap to clone. The pool may be a replica's.
#[derive(Clone, Debug)]
pub struct Reader {
    pool: PgPool,
}

/// A row as the page queries return it.
#[derive(sqlx::FromRow)]
struct RawRow {
    id: Uuid,
    depth: i32,
    path: String,
    updated_position: i64,
    state: String,
}

impl RawRow {
    fn decode(&self) -> Result<ListRow, sqlx::Error> {
        let state = parse_state(&self.state).map_err(|reason| sqlx::Error::Decode(reason.into()))?;
        Ok(ListRow { state, updated_position: Position(self.updated_position.unsigned_abs()) })
    }
}

impl Reader {
    /// A reader on `pool`.
    pub const fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    /// The place of the list, as stored.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn position(&self) -> Result<Position, sqlx::Error> {
        position_of(&self.pool, ResourceList::NAME).await
    }

    /// The pool it reads from, for health checks.
    pub const fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// A snapshot with the position it shows.
    async fn snapshot(&self) -> Result<(Transaction<'static, Postgres>, Position), sqlx::Error> {
        let mut tx = self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        // The first statement takes the snapshot that all later ones of this transaction see.
        let position = position_of(&mut *tx, ResourceList::NAME).await?;
        Ok((tx, position))
    }
}

async fn find_row(
    connection: &mut PgConnection,
    kind: &str,
    name: &str,
) -> Result<Option<RawRow>, sqlx::Error> {
    // The newest: while an old bearer of the name is still going away, the new one is who users mean, as
    // soon as it exists.
    Ok(sqlx::query_as::<_, RawRow>(include_str!("../find.sql"))
        .bind(kind)
        .bind(name)
        .fetch_all(connection)
        .await?
        .into_iter()
        .next())
}

/// The nil id: before every other.
const FIRST_ID: ResourceId = ResourceId(Uuid::nil());
