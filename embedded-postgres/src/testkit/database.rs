//! One test's database.

use std::fmt::Display;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::testkit::{janitor, server, template};
use crate::url::with_database;

/// A database that one test has for itself. It is dropped, sessions and all, some time after the value is.
#[derive(Debug)]
pub struct TestDatabase {
    server_url: String,
    name: String,
    url: String,
}

impl TestDatabase {
    /// An empty database.
    ///
    /// # Panics
    /// When there is no server and none can be started.
    pub async fn create() -> Self {
        Self::clone_of("template1").await
    }

    /// A copy of the database that `migrate` made. It runs once per server for each `name`, on a URL of an empty
    /// database, and must close the connections it opens. Names are shared by all test binaries of a run: two
    /// different migrations need two names.
    ///
    /// # Panics
    /// When there is no server, or when the migration fails.
    pub async fn from_template<F, Fut, E>(name: &str, migrate: F) -> Self
    where
        F: FnOnce(String) -> Fut,
        Fut: Future<Output = Result<(), E>>,
        E: Display,
    {
        let server_url = server::shared_server().await;
        match template::ensure(server_url, name, migrate).await {
            Ok(template) => Self::clone_of(&template).await,
            Err(error) => panic!("cannot make the test template {name}: {error}"),
        }
    }

    async fn clone_of(template: &str) -> Self {
        let server_url = server::shared_server().await.to_owned();
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        if let Err(error) = template::clone(&server_url, template, &name).await {
            panic!("cannot copy {template} into a test database: {error}");
        }
        let url = with_database(&server_url, &name);
        Self { server_url, name, url }
    }

    /// Its URL, for sqlx and libpq.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A new pool of at most 8 connections.
    ///
    /// # Panics
    /// When the database does not answer.
    pub async fn pool(&self) -> PgPool {
        match PgPoolOptions::new().max_connections(8).test_before_acquire(false).connect(&self.url).await {
            Ok(pool) => pool,
            Err(error) => panic!("cannot connect to the test database: {error}"),
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        janitor::drop_later(std::mem::take(&mut self.server_url), std::mem::take(&mut self.name));
    }
}
