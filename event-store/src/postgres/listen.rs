//! Hearing of other processes' appends.

use super::PgStore;
use super::errors::classify;
use crate::store::StoreError;
use sqlx::postgres::{PgListener, PgPoolOptions};

/// The channel that `append` notifies on; notifications carry nothing, readers look at the log.
const CHANNEL: &str = "converge_log";

impl PgStore {
    /// Waits for one notification, on a connection of its own. A (re)connection counts as one: what was notified while
    /// nobody listened is found by the look that follows.
    ///
    /// The listener leaves its slot while it is waited on, so a caller that is cancelled closes it, and the next
    /// call starts from a new connection.
    pub(super) async fn notified(&self) -> Result<(), StoreError> {
        let mut slot = self.listener.lock().await;
        let Some(mut listener) = slot.take() else {
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(self.options.connect_timeout)
                .idle_timeout(None)
                .max_lifetime(None)
                .test_before_acquire(false)
                .connect_lazy_with(self.listen_options.clone());
            let mut listener = PgListener::connect_with(&pool).await.map_err(|error| classify(&error))?;
            listener.ignore_pool_close_event(true);
            listener.listen(CHANNEL).await.map_err(|error| classify(&error))?;
            *slot = Some(listener);
            return Ok(());
        };
        // None: the connection was lost and made again, which counts as a notification.
        listener.try_recv().await.map_err(|error| classify(&error))?;
        while listener.next_buffered().is_some() {}
        *slot = Some(listener);
        Ok(())
    }
}
