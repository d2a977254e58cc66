//! Who an id is, or was: events outlive the resources they tell of.

use converge_domain::{Position, ResourceId};
use sqlx::PgPool;
use uuid::Uuid;

/// What never changed about a resource, alive or gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdentityRow {
    pub id: ResourceId,
    pub kind: String,
    pub name: String,
    /// Nearest first.
    pub ancestors: Vec<ResourceId>,
    pub created_position: Position,
}

/// Looks identities up.
#[derive(Clone, Debug)]
pub struct Identities {
    pool: PgPool,
}

type Raw = (Uuid, String, String, Vec<Uuid>, i64);

impl Identities {
    /// A reader on `pool`.
    pub const fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    /// Those of `ids` that the projection has seen, in no particular order. An identity once found never
    /// changes, so callers may keep it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn of(&self, ids: &[ResourceId]) -> Result<Vec<IdentityRow>, sqlx::Error> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows: Vec<Raw> =
            sqlx::query_as(include_str!("identities_of.sql")).bind(&ids).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(decode).collect())
    }

    /// The last `limit` bearers of a name, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn named(&self, kind: &str, name: &str, limit: u32) -> Result<Vec<IdentityRow>, sqlx::Error> {
        let rows: Vec<Raw> = sqlx::query_as(include_str!("identities_named.sql"))
            .bind(kind)
            .bind(name)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        Ok(rows.into_iter().map(decode).collect())
    }
}

fn decode((id, kind, name, ancestors, created): Raw) -> IdentityRow {
    IdentityRow {
        id: ResourceId(id),
        kind,
        name,
        ancestors: ancestors.into_iter().map(ResourceId).collect(),
        created_position: Position(created.unsigned_abs()),
    }
}
