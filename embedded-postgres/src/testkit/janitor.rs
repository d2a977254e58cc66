//! Drops the databases of finished tests in the background. A clone is about 8 MB and a run has hundreds of
//! tests; waiting for each drop would cost more than the tests themselves, and `Drop` cannot wait for futures.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use sqlx::{Connection, Executor, PgConnection};

use crate::server::quote;

/// Hands a database over to be dropped. What is still queued when the process ends goes with the server.
pub(crate) fn drop_later(server_url: String, database: String) {
    static QUEUE: OnceLock<Option<Sender<(String, String)>>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = channel::<(String, String)>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let work = move || {
            for (server_url, database) in receiver {
                // A failed drop costs disk space until the end of the run and nothing else.
                let _ = runtime.block_on(drop_now(&server_url, &database));
            }
        };
        std::thread::Builder::new().name("test-database-janitor".to_owned()).spawn(work).ok()?;
        Some(sender)
    });
    if let Some(queue) = queue {
        let _ = queue.send((server_url, database));
    }
}

async fn drop_now(server_url: &str, database: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server_url).await?;
    connection.execute(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quote(database)).as_str()).await?;
    connection.close().await
}
