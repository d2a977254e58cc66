//! The server's process: a database, the listeners, and the parts between them, started and stopped in order.
//!
//! Listeners are bound first, so that a taken port is told before anything is started, and so that an
//! ephemeral port is known to whoever asked for it. The database comes second and goes last: nothing that
//! writes is alive when an embedded server stops.

mod api;
mod database;
mod wiring;

use anyhow::Context;
use clap::ValueEnum;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use database::{Database, Place};

/// How long the parts may take to finish what they hold after a signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// What a process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Role {
    /// Everything.
    All,
    /// The engine and the API.
    Control,
    /// The door for workers.
    Broker,
}

impl Role {
    /// Whether it serves the API.
    pub const fn serves_api(self) -> bool {
        matches!(self, Self::All | Self::Control)
    }

    /// Whether workers connect to it.
    pub const fn serves_workers(self) -> bool {
        matches!(self, Self::All | Self::Broker)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Control => "control",
            Self::Broker => "broker",
        })
    }
}

/// What to start.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub role: Role,
    pub database: Database,
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Port 0 takes a free one.
    pub broker_listen: SocketAddr,
    /// Run the built-in worker in this process too.
    pub builtin_worker: bool,
}

/// The listeners that the role has.
pub struct Listeners {
    pub http: Option<TcpListener>,
    pub broker: Option<TcpListener>,
}

/// A server that answers.
pub struct RunningServer {
    /// Where the API listens.
    pub http: Option<SocketAddr>,
    /// Where workers connect.
    pub broker: Option<SocketAddr>,
    /// What the data is in, for people.
    pub database: Place,
    parts: JoinSet<anyhow::Result<()>>,
    shutdown: CancellationToken,
    opened: database::Opened,
}

/// Starts a server; it answers when this returns. Cancelling `shutdown` stops it.
///
/// # Errors
/// When a port is taken, the database cannot be reached or migrated, or a part does not start.
pub async fn run(options: ServerOptions, shutdown: CancellationToken) -> anyhow::Result<RunningServer> {
    let http = bind(options.role.serves_api(), options.listen).await?;
    let broker = bind(options.role.serves_workers(), options.broker_listen).await?;
    let addresses = (local(http.as_ref())?, local(broker.as_ref())?);
    let opened = database::open(options.database).await?;
    let listeners = Listeners { http, broker };
    let parts = match wiring::start(&opened.url, options.role, listeners, shutdown.clone()).await {
        Ok(mut parts) => {
            if let (true, Some(broker)) = (options.builtin_worker, addresses.1) {
                parts.spawn(builtin_worker(broker, shutdown.clone()));
            }
            parts
        }
        Err(error) => {
            shutdown.cancel();
            opened.close().await;
            return Err(error);
        }
    };
    Ok(RunningServer {
        http: addresses.0,
        broker: addresses.1,
        database: opened.place.clone(),
        parts,
        shutdown,
        opened,
    })
}

/// The built-in worker, dialling this process's own broker as any other worker would.
async fn builtin_worker(broker: SocketAddr, shutdown: CancellationToken) -> anyhow::Result<()> {
    let worker = converge_sdk::Worker::builder()
        .settings(converge_sdk::Settings {
            brokers: vec![broker.to_string()],
            ..converge_sdk::Settings::from_env()?
        })
        .providers(converge_builtin::providers(|name| std::env::var(name).ok()))
        .build()?;
    worker.run(shutdown).await.context("the built-in worker failed")
}

/// Brings the schema up to date and does nothing else.
///
/// # Errors
/// When the database cannot be reached, or was migrated by a newer build.
pub async fn migrate(database: Database) -> anyhow::Result<()> {
    let opened = database::open(database).await?;
    let migrated = wiring::migrate(&opened.url).await;
    opened.close().await;
    migrated
}

impl RunningServer {
    /// Runs until `stop` says so, or a part ends by itself, or the shutdown token is cancelled; then stops in
    /// order.
    ///
    /// # Errors
    /// When a part failed: the others are stopped then, because half a server is worse than none.
    pub async fn stopped(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let first = tokio::select! {
            () = stop => None,
            () = self.shutdown.cancelled() => None,
            part = self.parts.join_next() => part,
        };
        let result = first.map_or(Ok(()), |part| match part {
            Ok(Ok(())) if !self.shutdown.is_cancelled() => {
                Err(anyhow::anyhow!("a part of the server ended by itself"))
            }
            Ok(result) => result,
            Err(join) => Err(join.into()),
        });
        self.shutdown.cancel();
        let drained = tokio::time::timeout(STOP_TIMEOUT, async {
            while let Some(part) = self.parts.join_next().await {
                if let Ok(Err(error)) = part {
                    tracing::warn!(%error, "a part did not stop cleanly");
                }
            }
        });
        if drained.await.is_err() {
            tracing::warn!("some parts did not stop in {STOP_TIMEOUT:?}; they are cut off");
            self.parts.shutdown().await;
        }
        self.opened.close().await;
        result
    }
}

async fn bind(wanted: bool, address: SocketAddr) -> anyhow::Result<Option<TcpListener>> {
    if !wanted {
        return Ok(None);
    }
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    Ok(Some(listener))
}

fn local(listener: Option<&TcpListener>) -> std::io::Result<Option<SocketAddr>> {
    listener.map(TcpListener::local_addr).transpose()
}

/// Completes at the first Ctrl-C or SIGTERM. The handlers are in place when this returns, not only when the
/// future is first polled.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
