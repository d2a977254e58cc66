//! A migrated database for one test.

#![allow(dead_code, reason = "each test binary uses its part")]

use embedded_postgres::testkit::TestDatabase;
use sqlx::PgPool;

pub async fn database() -> (TestDatabase, PgPool) {
    let database = TestDatabase::from_template("converge", |url| async move {
        let pool = PgPool::connect(&url).await.unwrap();
        let migrated = converge_event_store::migrate(&pool).await;
        pool.close().await;
        migrated
    })
    .await;
    let pool = database.pool().await;
    (database, pool)
}
