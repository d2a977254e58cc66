//! The place of a projection in the log, and who may move it.

use super::{CatchUp, ProjectError};
use converge_domain::Position;
use sqlx::{Connection, PgConnection, PgExecutor};

/// A runner's hold on a projection's checkpoint row.
///
/// The fence is (epoch, position): a runner that was frozen and wakes up after another took over carries an
/// old epoch, one that repeats a batch after a lost commit answer carries an old position. Both fail the
/// compare-and-set inside the transaction that would have written rows, so the rows stay unwritten too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    name: &'static str,
    epoch: i64,
    position: Position,
}

impl Checkpoint {
    /// Takes the projection over from whoever ran it, building it anew if its version is older.
    ///
    /// # Errors
    /// [`ProjectError::Newer`] when a newer build wrote the rows: they are left alone.
    pub async fn take(connection: &mut PgConnection, projection: &dyn CatchUp) -> Result<Self, ProjectError> {
        let (name, known) = (projection.name(), projection.version());
        let mut tx = connection.begin().await?;
        let (stored, position, epoch): (i32, i64, i64) =
            sqlx::query_as(include_str!("take.sql")).bind(name).bind(known).fetch_one(&mut *tx).await?;
        let mut checkpoint = Self { name, epoch, position: Position(position.unsigned_abs()) };
        if stored > known {
            return Err(ProjectError::Newer { stored, known });
        }
        if stored < known {
            projection.reset(&mut tx).await?;
            sqlx::query(include_str!("restart.sql"))
                .bind(name)
                .bind(epoch)
                .bind(known)
                .execute(&mut *tx)
                .await?;
            checkpoint.position = Position(0);
        }
        tx.commit().await?;
        Ok(checkpoint)
    }

    /// Everything up to here is applied.
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Moves the row inside `tx`; the moved checkpoint holds once `tx` has committed.
    ///
    /// # Errors
    /// [`ProjectError::Fenced`] when another runner moved or took it.
    pub async fn advance(self, tx: &mut PgConnection, to: Position) -> Result<Self, ProjectError> {
        let moved = sqlx::query(include_str!("advance.sql"))
            .bind(self.name)
            .bind(self.epoch)
            .bind(self.position.0.cast_signed())
            .bind(to.0.cast_signed())
            .execute(tx)
            .await?;
        if moved.rows_affected() == 1 { Ok(Self { position: to, ..self }) } else { Err(ProjectError::Fenced) }
    }
}

/// The stored place of `name`, as the executor's snapshot sees it; 0 before it ever ran.
///
/// # Errors
/// When the database fails.
pub async fn position_of(executor: impl PgExecutor<'_>, name: &str) -> Result<Position, sqlx::Error> {
    let stored: Option<i64> =
        sqlx::query_scalar("SELECT position FROM projections.checkpoint WHERE name = $1")
            .bind(name)
            .fetch_optional(executor)
            .await?;
    Ok(Position(stored.unwrap_or(0).unsigned_abs()))
}
