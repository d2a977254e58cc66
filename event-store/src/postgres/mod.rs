//! The store on PostgreSQL.
//!
//! Appends have connections of their own and go through one SQL function; everything else is a single
//! statement on a pool. No method opens a transaction from the client, so a future that is cancelled at any
//! await leaves no connection inside one.

mod append;
mod columns;
mod decode;
mod errors;
mod listen;
mod reads;
mod store;

use crate::codec::{Identity, PayloadCodec};
use crate::store::StoreError;
use sqlx::PgConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use std::str::FromStr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Idle append connections kept; more than there are lanes is never needed for long.
const APPENDERS_IDLE_MAX: usize = 8;

/// How to talk to the database.
#[derive(Clone, Debug)]
pub struct PgOptions {
    /// Connections of the reading pool.
    pub readers_max: u32,
    /// Whether appends notify other processes. Databases of one server share a lock for notifications, which
    /// parallel tests need not fight over; polls deliver all the same.
    pub notify: bool,
    /// Longest wait for a lock inside an append, in milliseconds.
    pub lock_timeout_ms: u32,
    /// Longest append or read, in milliseconds.
    pub statement_timeout_ms: u32,
    /// Longest wait for a new connection, or for one from the pool.
    pub connect_timeout: Duration,
    /// Positions in each new partition of the log.
    pub partition_size: u64,
}

impl Default for PgOptions {
    fn default() -> Self {
        Self {
            readers_max: 12,
            notify: true,
            lock_timeout_ms: 5_000,
            statement_timeout_ms: 30_000,
            connect_timeout: Duration::from_secs(5),
            partition_size: 10_000_000,
        }
    }
}

/// The log and the inline tables in PostgreSQL.
pub struct PgStore {
    options: PgOptions,
    append_options: PgConnectOptions,
    listen_options: PgConnectOptions,
    /// Idle append connections.
    appenders: Mutex<Vec<PgConnection>>,
    pool: PgPool,
    codec: Arc<dyn PayloadCodec>,
    listener: tokio::sync::Mutex<Option<sqlx::postgres::PgListener>>,
    /// The last position known to have a partition.
    last_partitioned: AtomicU64,
}

impl PgStore {
    /// Opens the store at `url`, whose database is migrated already.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the database does not answer.
    pub async fn connect(url: &str, options: PgOptions) -> Result<Self, StoreError> {
        Self::connect_with(url, options, Arc::new(Identity)).await
    }

    /// Like [`Self::connect`], with payloads stored through `codec`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the database does not answer.
    pub async fn connect_with(
        url: &str,
        options: PgOptions,
        codec: Arc<dyn PayloadCodec>,
    ) -> Result<Self, StoreError> {
        let base =
            PgConnectOptions::from_str(url).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let timeout = format!("{}ms", options.statement_timeout_ms);
        let listen_options = base.clone().application_name("converge listen");
        // A vanished client must not hold locks until TCP gives up, nor by sitting in a transaction.
        let guarded = base.application_name("converge").options([
            ("idle_in_transaction_session_timeout", "2s"),
            ("tcp_user_timeout", "10s"),
            ("default_transaction_isolation", "read\\ committed"),
            ("statement_timeout", timeout.as_str()),
            // Every read has an index, and its plan is kept by the connection: one made while a table or a new partition was
            // empty must not read it as a whole once it is full. What does walk a table says so itself.
            ("enable_seqscan", "off"),
            // Compiling such plans takes longer than running them.
            ("jit", "off"),
        ]);
        let lock_timeout = format!("{}ms", options.lock_timeout_ms);
        let append_options = guarded.clone().options([
            ("lock_timeout", lock_timeout.as_str()),
            ("synchronous_commit", "on"),
            ("converge.notify", if options.notify { "on" } else { "off" }),
        ]);
        let pool = PgPoolOptions::new()
            .max_connections(options.readers_max)
            .acquire_timeout(options.connect_timeout)
            .test_before_acquire(false)
            .connect_with(guarded)
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let store = Self {
            options,
            append_options,
            listen_options,
            appenders: Mutex::default(),
            pool,
            codec,
            listener: tokio::sync::Mutex::default(),
            last_partitioned: AtomicU64::new(0),
        };
        store.ensure_partition().await?;
        Ok(store)
    }

    /// The pool of readers, for read models of other crates.
    pub const fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Forgets command ids and batch fences older than `age_ms`, a bounded number at a time; returns how many.
    ///
    /// # Errors
    /// When the database cannot do it now.
    pub async fn prune(&self, age_ms: i64) -> Result<u64, StoreError> {
        const BATCH: i64 = 5_000;
        let query = sqlx::query_scalar::<_, i64>(include_str!("sql/prune.sql")).bind(age_ms).bind(BATCH);
        let pruned = query.fetch_one(&self.pool).await.map_err(|error| errors::classify(&error))?;
        Ok(pruned.unsigned_abs())
    }
}

/// Runs a query whose loss does no harm.
async fn run(
    rows: impl Future<Output = Result<Vec<PgRow>, sqlx::Error>> + Send,
) -> Result<Vec<PgRow>, StoreError> {
    rows.await.map_err(|error| errors::classify(&error))
}

/// Brings the database's schema up to this build's. Processes that start together wait for each other: the
/// migrator holds an advisory lock while it works.
///
/// # Errors
/// When a migration fails, or the database was migrated by a newer or a different build.
pub async fn migrate(pool: &PgPool) -> Result<(), sqlx::migrate::MigrateError> {
    sqlx::migrate!("../migrations").run(pool).await
}
