//! What a catch-up projection is.

use super::ProjectError;
use async_trait::async_trait;
use converge_event_store::StoredEvent;
use sqlx::PgConnection;

/// A fold of the log into tables of its own.
#[async_trait]
pub trait CatchUp: Send + Sync + 'static {
    /// Its name in the checkpoint table, metrics and health; unique, never reused for something else.
    fn name(&self) -> &'static str;

    /// Raised whenever the same log would give other rows. A stored lower version is built anew.
    fn version(&self) -> i32;

    /// Empties its tables, before a build from position 0.
    ///
    /// # Errors
    /// When the database refuses.
    async fn reset(&self, tx: &mut PgConnection) -> Result<(), ProjectError>;

    /// Applies events in position order, inside the transaction that also moves the checkpoint. The result
    /// must depend on the rows and the events alone, never on where one batch ends and the next begins.
    ///
    /// # Errors
    /// [`ProjectError::Poison`] for an event that can never be applied: the projection stops there.
    async fn apply(&self, tx: &mut PgConnection, events: &[StoredEvent]) -> Result<(), ProjectError>;
}
