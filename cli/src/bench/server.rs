//! The PostgreSQL that a run uses, as every scenario of the run must use the same one: an embedded server with
//! fsync on, in a directory of its own, or one that the user names.

use anyhow::Context;
use embedded_postgres::{EmbeddedPostgres, Options};
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, Row};

use super::CommonArgs;

const DATABASE: &str = "converge_bench";

/// A server and an empty database on it.
pub struct BenchServer {
    embedded: Option<EmbeddedPostgres>,
    maintenance_url: String,
    url: String,
}

/// What decides the speed of a commit, as the server itself reports it.
#[derive(Debug, Clone, Serialize)]
pub struct ServerSettings {
    pub version: String,
    pub fsync: String,
    pub synchronous_commit: String,
    pub full_page_writes: String,
    pub shared_buffers: String,
    pub max_wal_size: String,
    pub wal_compression: String,
    /// Median of 100 one-row commits on one connection, in microseconds: what one flush costs on this disk.
    pub commit_us: u64,
}

impl BenchServer {
    /// Starts or connects, and makes the database anew.
    pub async fn open(args: &CommonArgs) -> anyhow::Result<Self> {
        let (embedded, maintenance_url) = match &args.database_url {
            Some(url) => (None, url.clone()),
            None => {
                // A directory of its own for every run: it is deleted afterwards.
                let name = format!("bench-{}", std::process::id());
                let dir = args.data_dir.as_ref().map(|dir| dir.join(&name));
                let dir = dir.unwrap_or_else(|| embedded_postgres::default_data_dir(&name));
                let options = Options { remove_when_stopped: true, ..Options::new(dir) };
                let server = EmbeddedPostgres::start(options).await?;
                let url = server.url("postgres");
                (Some(server), url)
            }
        };
        let parsed: PgConnectOptions = maintenance_url.parse().context("the database URL")?;
        let url = parsed.database(DATABASE).to_url_lossy().to_string();
        let server = Self { embedded, maintenance_url, url };
        server.drop_database().await?;
        server.maintenance(&format!("CREATE DATABASE {DATABASE}")).await?;
        Ok(server)
    }

    /// The URL of the empty database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A connection to it.
    pub async fn connect(&self) -> anyhow::Result<PgConnection> {
        PgConnection::connect(&self.url).await.context("cannot connect to the bench database")
    }

    /// The server's main process, when it is ours.
    pub fn pid(&self) -> Option<u32> {
        self.embedded.as_ref().and_then(|server| u32::try_from(server.pid()).ok())
    }

    /// Reads the settings and measures a bare commit.
    pub async fn settings(&self) -> anyhow::Result<ServerSettings> {
        let mut connection = self.connect().await?;
        let mut read = async |name: &str| -> anyhow::Result<String> {
            let row = sqlx::query("SELECT current_setting($1)").bind(name).fetch_one(&mut connection).await?;
            Ok(row.try_get(0)?)
        };
        let settings = ServerSettings {
            version: read("server_version").await?,
            fsync: read("fsync").await?,
            synchronous_commit: read("synchronous_commit").await?,
            full_page_writes: read("full_page_writes").await?,
            shared_buffers: read("shared_buffers").await?,
            max_wal_size: read("max_wal_size").await?,
            wal_compression: read("wal_compression").await?,
            commit_us: self.commit_us().await?,
        };
        connection.close().await?;
        Ok(settings)
    }

    async fn commit_us(&self) -> anyhow::Result<u64> {
        let mut connection = self.connect().await?;
        connection.execute("CREATE TABLE bare_commit (id int)").await?;
        let mut times = Vec::with_capacity(100);
        for _ in 0..100 {
            let start = std::time::Instant::now();
            sqlx::query("INSERT INTO bare_commit VALUES (1)").execute(&mut connection).await?;
            times.push(start.elapsed().as_micros());
        }
        connection.execute("DROP TABLE bare_commit").await?;
        connection.close().await?;
        times.sort_unstable();
        Ok(u64::try_from(times[times.len() / 2])?)
    }

    /// Drops the database, and the server with its data if it is ours.
    pub async fn close(self) -> anyhow::Result<()> {
        self.drop_database().await?;
        if let Some(embedded) = self.embedded {
            embedded.stop().await?;
        }
        Ok(())
    }

    async fn drop_database(&self) -> anyhow::Result<()> {
        self.maintenance(&format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")).await
    }

    async fn maintenance(&self, statement: &str) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(&self.maintenance_url).await.context("cannot connect")?;
        connection.execute(statement).await?;
        connection.close().await?;
        Ok(())
    }
}
