//! Answers from the list. Each takes one snapshot, so rows and the position beside them belong together.
//! States are looked up in the heads.

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

use crate::catch_up::{ResourceList, position_of};
use converge_domain::resource::ResourceState;
use converge_domain::{AggregateId, Position, ResourceId};
use converge_event_store::{Store, StoreError};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// An answer and the position it is true at.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer<T> {
    /// Every event up to here is in the answer. A state may show later ones of its own.
    pub position: Position,
    pub value: T,
}

/// Why the list could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Heads(#[from] StoreError),
}

/// Part of an ordered whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Page<R, K> {
    pub rows: Vec<R>,
    /// Behind which the rest is, if there is a rest. A page may be shorter than asked for and still have one.
    pub next: Option<K>,
}

/// One listed resource.
#[derive(Clone, PartialEq, Debug)]
pub struct ListRow {
    pub state: Arc<ResourceState>,
}

impl ListRow {
    /// Where it stands in a list.
    pub fn key(&self) -> Key {
        let identity = self.state.id();
        Key { kind: identity.kind.clone(), name: identity.name.clone(), id: identity.id }
    }
}

/// Reads the list. Cheap to clone. The pool may be a replica's.
///
/// Which resources are on a page, and in what order, comes from the list, in one snapshot with its position P;
/// their states come from the heads, read *after* it. Every event the list has seen is committed with its head,
/// so each state includes what happened to its resource up to P, and the stamp P is true of all. States may be
/// ahead of P. So that what is asked for and what is shown agree, rows whose state is gone or does not pass the
/// filter any more are left out: whoever follows the log from P on is told of each of them.
#[derive(Clone)]
pub struct Reader {
    pool: PgPool,
    heads: Arc<dyn Store>,
}

/// A row as the page queries return it.
#[derive(sqlx::FromRow)]
struct RawRow {
    id: Uuid,
    kind: String,
    name: String,
    depth: i32,
    path: String,
}

impl RawRow {
    fn key(&self) -> Key {
        Key { kind: self.kind.clone(), name: self.name.clone(), id: ResourceId(self.id) }
    }
}

impl Reader {
    /// A reader of the list on `pool`, and of states from `heads`.
    pub const fn new(pool: PgPool, heads: Arc<dyn Store>) -> Self {
        Self { pool, heads }
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

    /// A snapshot with the position it shows, for reads along ordered indexes.
    ///
    /// It is dropped, not committed: it wrote nothing, and the answer need not wait for the end of it.
    async fn snapshot(&self) -> Result<(Transaction<'static, Postgres>, Position), sqlx::Error> {
        self.snapshot_for(Scan::Ordered).await
    }

    async fn snapshot_for(
        &self,
        scan: Scan,
    ) -> Result<(Transaction<'static, Postgres>, Position), sqlx::Error> {
        let mut tx = self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        // The first statement takes the snapshot that all later ones of this transaction see.
        let stored: Option<i64> = sqlx::query_scalar(include_str!("../snapshot.sql"))
            .bind(ResourceList::NAME)
            .bind(scan.bitmaps())
            .fetch_one(&mut *tx)
            .await?;
        let position = Position(stored.unwrap_or(0).unsigned_abs());
        Ok((tx, position))
    }

    /// The states of `rows` that are still there, by id. To be called after the rows were read.
    async fn states<'a>(
        &self,
        rows: impl Iterator<Item = &'a RawRow>,
    ) -> Result<HashMap<Uuid, Arc<ResourceState>>, StoreError> {
        let ids: Vec<AggregateId> = rows.map(|row| AggregateId(row.id)).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let heads = self.heads.heads(&ids).await?;
        let live = heads.into_iter().filter_map(|head| {
            let state = head.state.as_resource().filter(|state| state.exists())?;
            Some((head.id.0, Arc::clone(state)))
        });
        Ok(live.collect())
    }
}

/// How the rows of a read are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scan {
    /// In the order of an index, so that a limit ends it.
    Ordered,
    /// By an inverted index, which has no order.
    Inverted,
}

impl Scan {
    /// A bitmap collects a whole range before the first row of a page comes of it, and what ranges hold is guessed; only an
    /// inverted index needs one.
    const fn bitmaps(self) -> &'static str {
        match self {
            Self::Ordered => "off",
            Self::Inverted => "on",
        }
    }
}

/// The listed bearer of a name and the root above it. The newest: while an old bearer is still going away, the
/// new one is who users mean, as soon as it exists.
async fn find_row(
    connection: &mut PgConnection,
    kind: &str,
    name: &str,
) -> Result<Option<(RawRow, Uuid)>, sqlx::Error> {
    #[derive(sqlx::FromRow)]
    struct Found {
        #[sqlx(flatten)]
        row: RawRow,
        root: Uuid,
    }
    let found = sqlx::query_as::<_, Found>(include_str!("../find.sql"))
        .bind(kind)
        .bind(name)
        .fetch_all(connection)
        .await?;
    Ok(found.into_iter().next().map(|found| (found.row, found.root)))
}

/// Cuts off the row that was read only to see whether there is more; its key says where the rest starts.
fn cut<R, K>(rows: &mut Vec<R>, limit: u32, key: impl Fn(&R) -> K) -> Option<K> {
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    rows.last().filter(|_| more).map(key)
}

/// The nil id: before every other.
const FIRST_ID: ResourceId = ResourceId(Uuid::nil());
