//! What tests may rely on when they ask for a database.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use embedded_postgres::testkit::{TestDatabase, start_server};
use sqlx::{Connection, Executor, PgConnection};

async fn tables(database: &TestDatabase) -> Vec<String> {
    let pool = database.pool().await;
    let rows =
        sqlx::query_scalar("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1");
    rows.fetch_all(&pool).await.unwrap()
}

#[tokio::test]
async fn an_empty_database_is_empty() {
    assert!(tables(&TestDatabase::create().await).await.is_empty());
}

#[tokio::test]
async fn a_template_is_migrated_once_and_its_copies_do_not_see_each_other() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let migrate = |url: String| async move {
        RUNS.fetch_add(1, Ordering::SeqCst);
        let mut connection = PgConnection::connect(&url).await?;
        connection.execute("CREATE TABLE note (id int)").await?;
        connection.close().await
    };
    let (one, two, three) = tokio::join!(
        TestDatabase::from_template("testkit_once", migrate),
        TestDatabase::from_template("testkit_once", migrate),
        TestDatabase::from_template("testkit_once", migrate),
    );
    one.pool().await.execute("CREATE TABLE only_here (id int)").await.unwrap();
    assert_eq!(tables(&one).await, ["note", "only_here"]);
    assert_eq!(tables(&two).await, ["note"]);
    assert_eq!(tables(&three).await, ["note"]);
    assert!(RUNS.load(Ordering::SeqCst) <= 1, "another run against the same server may have made it before");
}

#[tokio::test]
async fn a_dropped_database_goes_even_if_a_session_is_open() {
    let kept = TestDatabase::create().await;
    let gone = TestDatabase::create().await;
    let name = gone.name().to_owned();
    let session = PgConnection::connect(gone.url()).await.unwrap();
    drop(gone);
    let pool = kept.pool().await;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
            .bind(&name)
            .fetch_one(&pool)
            .await
            .unwrap();
        if !exists {
            break;
        }
        assert!(Instant::now() < deadline, "the database is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(session);
}

#[tokio::test]
async fn a_throw_away_server_takes_its_files_with_it() {
    let server = start_server().await.unwrap();
    let dir = server.data_dir().to_owned();
    assert!(dir.join("data/PG_VERSION").exists());
    server.stop().await.unwrap();
    assert!(!dir.exists(), "stop waits for it");

    let dropped = start_server().await.unwrap();
    let dir = dropped.data_dir().to_owned();
    drop(dropped);
    let deadline = Instant::now() + Duration::from_secs(60);
    while dir.exists() {
        assert!(Instant::now() < deadline, "{} is still there", dir.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
