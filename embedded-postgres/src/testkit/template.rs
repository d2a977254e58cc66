//! Templates: a database that is migrated once per server and then only copied.

use std::fmt::Display;
use std::time::{Duration, Instant};

use sqlx::{Connection, Executor, PgConnection, Row};

use crate::server::quote;
use crate::url::with_database;

/// Other test processes may hold the template's lock while they migrate it.
const CLONE_MAX: Duration = Duration::from_secs(60);

/// Makes `template_<name>` unless it exists, and returns its name.
///
/// Test processes run side by side against one server, so the check and the making happen under an advisory
/// lock, held by one session on one database all along. The template gets its name only after the migration has
/// succeeded: a test process killed half way leaves a database under another name, which is dropped first.
pub(crate) async fn ensure<F, Fut, E>(server_url: &str, name: &str, migrate: F) -> Result<String, sqlx::Error>
where
    F: FnOnce(String) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Display,
{
    let template = format!("template_{name}");
    let unfinished = format!("unfinished_{name}");
    let mut connection = PgConnection::connect(server_url).await?;
    // Advisory locks belong to a database; every process connects to the one in the server's URL.
    sqlx::query("SELECT pg_advisory_lock(hashtextextended($1, 0))")
        .bind(&template)
        .execute(&mut connection)
        .await?;
    let exists: bool = sqlx::query("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(&template)
        .fetch_one(&mut connection)
        .await?
        .try_get(0)?;
    if !exists {
        let (from, to) = (quote(&unfinished), quote(&template));
        connection.execute(format!("DROP DATABASE IF EXISTS {from} WITH (FORCE)").as_str()).await?;
        connection.execute(format!("CREATE DATABASE {from}").as_str()).await?;
        if let Err(error) = migrate(with_database(server_url, &unfinished)).await {
            panic!("the migration of the test template {name} failed: {error}");
        }
        retry(&mut connection, &format!("ALTER DATABASE {from} RENAME TO {to}")).await?;
    }
    // Closing the session releases the lock.
    connection.close().await?;
    Ok(template)
}

/// Copies a template. On a server without fsync copying the files beats writing every page through the log.
pub(crate) async fn clone(server_url: &str, template: &str, database: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server_url).await?;
    let version: String =
        sqlx::query("SHOW server_version_num").fetch_one(&mut connection).await?.try_get(0)?;
    let strategy = if version.parse().unwrap_or(0) >= 150_000 { STRATEGY } else { "" };
    let statement = format!("CREATE DATABASE {} TEMPLATE {} {strategy}", quote(database), quote(template));
    retry(&mut connection, &statement).await?;
    connection.close().await
}

/// Measured on two cores, PostgreSQL 15, fsync off; see `docs/adr/0004-embedded-postgresql.md`.
const STRATEGY: &str = "STRATEGY FILE_COPY";

/// Renaming and copying need a database without sessions. A session that the migration has closed may live on
/// in the server for a moment, so 55006 (object in use) is asked again.
async fn retry(connection: &mut PgConnection, statement: &str) -> Result<(), sqlx::Error> {
    let deadline = Instant::now() + CLONE_MAX;
    loop {
        match connection.execute(statement).await {
            Ok(_) => return Ok(()),
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some("55006") && Instant::now() < deadline =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error),
        }
    }
}
