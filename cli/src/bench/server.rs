//! The PostgreSQL that a run uses, as every scenario of the run must use the same one: an embedded server with
//! fsync on, in a directory of its own, or one that the user names.

use anyhow::Context;
use embedded_postgres::{Binaries, EmbeddedPostgres, Options};
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, Row};
use uuid::Uuid;

use super::args::CommonArgs;
use super::cost::parent_of;

/// Counts what every statement costs, where it is installed and loaded.
const STATEMENTS: &str = "pg_stat_statements";

/// A server and an empty database on it.
pub struct BenchServer {
    embedded: Option<EmbeddedPostgres>,
    maintenance_url: String,
    /// Of this run alone, so that runs beside each other on one server do not meet.
    database: String,
    url: String,
    pid: Option<u32>,
    counts_statements: bool,
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
    pub checkpoint_timeout: String,
    pub autovacuum: String,
    /// Median of 100 one-row commits on one connection, in microseconds: what one flush costs on this disk.
    pub commit_us: u64,
}

impl BenchServer {
    /// Starts or connects, and makes the database anew.
    pub async fn open(args: &CommonArgs) -> anyhow::Result<Self> {
        let (embedded, maintenance_url) = match &args.database_url {
            Some(url) => (None, url.clone()),
            None => {
                let server = EmbeddedPostgres::start(embedded(args)?).await?;
                let url = server.url("postgres");
                (Some(server), url)
            }
        };
        let parsed: PgConnectOptions = maintenance_url.parse().context("the database URL")?;
        let database = format!("converge_bench_{}", Uuid::now_v7().simple());
        let url = parsed.database(&database).to_url_lossy().to_string();
        let pid = embedded.as_ref().and_then(|server| u32::try_from(server.pid()).ok());
        let mut server = Self { embedded, maintenance_url, database, url, pid, counts_statements: false };
        server.maintenance(&format!("CREATE DATABASE {}", server.database)).await?;
        if let Err(error) = server.prepare().await {
            server.close().await?;
            return Err(error);
        }
        Ok(server)
    }

    /// Runs a scenario on a fresh server or database, and cleans up however it ends.
    pub async fn with<T>(
        args: &CommonArgs,
        scenario: impl AsyncFnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<(T, ServerSettings)> {
        let server = Self::open(args).await?;
        // Boxed: a scenario's future holds everything it has started.
        let result = Box::pin(async {
            let settings = server.settings().await?;
            anyhow::Ok((scenario(&server).await?, settings))
        })
        .await;
        let closed = server.close().await;
        let result = result?;
        closed?;
        Ok(result)
    }

    /// Looks what can be counted here.
    async fn prepare(&mut self) -> anyhow::Result<()> {
        let mut connection = self.connect().await?;
        let text = "SELECT current_setting('shared_preload_libraries'), pg_backend_pid(), \
                    coalesce(inet_server_addr() <<= '127.0.0.0/8' OR inet_server_addr() = '::1', true)";
        let row = connection.fetch_one(text).await?;
        let (libraries, backend, here): (String, i32, bool) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        self.counts_statements = libraries.contains(STATEMENTS)
            && connection
                .execute(format!("CREATE EXTENSION IF NOT EXISTS {STATEMENTS}").as_str())
                .await
                .is_ok();
        if self.pid.is_none() && here {
            // A server of somebody else on this machine: the parent of our own session.
            self.pid = u32::try_from(backend).ok().and_then(|backend| parent_of(backend, "postgres"));
        }
        connection.close().await?;
        Ok(())
    }

    /// The URL of the empty database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A connection to it.
    pub async fn connect(&self) -> anyhow::Result<PgConnection> {
        PgConnection::connect(&self.url).await.context("cannot connect to the bench database")
    }

    /// The server's main process, when it runs here.
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Whether statements are counted one by one.
    pub const fn counts_statements(&self) -> bool {
        self.counts_statements
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
            checkpoint_timeout: read("checkpoint_timeout").await?,
            autovacuum: read("autovacuum").await?,
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
        self.maintenance(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database)).await
    }

    async fn maintenance(&self, statement: &str) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(&self.maintenance_url).await.context("cannot connect")?;
        connection.execute(statement).await?;
        connection.close().await?;
        Ok(())
    }
}

/// A server with the product's own settings, in a directory that goes with it, counting statements if it can.
fn embedded(args: &CommonArgs) -> anyhow::Result<Options> {
    // A directory of its own for every run: it is deleted afterwards.
    let name = format!("bench-{}", std::process::id());
    let dir = args.data_dir.as_ref().map(|dir| dir.join(&name));
    let dir = dir.unwrap_or_else(|| embedded_postgres::default_data_dir(&name));
    let binaries = Binaries::find(None, None)?;
    let mut settings = Vec::new();
    if binaries.has_library(STATEMENTS) {
        let track = if args.nested_statements { "all" } else { "top" };
        settings.push(("shared_preload_libraries".to_owned(), STATEMENTS.to_owned()));
        settings.push((format!("{STATEMENTS}.track"), track.to_owned()));
    }
    let binaries = Some(binaries.dir().to_owned());
    Ok(Options { remove_when_stopped: true, binaries, settings, ..Options::new(dir) })
}
