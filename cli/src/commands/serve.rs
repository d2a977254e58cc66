//! `converge serve`: the server's roles, in one process or in several.

use crate::console;
use crate::exit::{Failure, Outcome};
use crate::server::{self, Database, Role, RunningServer, ServerOptions};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Runs the server, or one role of it.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// What this process does: all, control (engine and API) or broker (the workers' door)
    #[arg(long, value_enum, default_value_t = Role::All)]
    role: Role,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Where to listen; shared by every command that serves.
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// Where the API listens
    #[arg(long, env = "CONVERGE_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where workers connect
    #[arg(long, env = "CONVERGE_BROKER_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:9090")]
    pub broker_listen: SocketAddr,
}

/// Which PostgreSQL to use; shared by every command that needs one.
#[derive(Debug, Args)]
pub struct DatabaseArgs {
    /// The database to use
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Start an embedded PostgreSQL on this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "database_url")]
    pub data_dir: Option<PathBuf>,
}

impl DatabaseArgs {
    /// The database that was named.
    pub fn named(self) -> Option<Database> {
        match (self.database_url, self.data_dir) {
            (_, Some(data_dir)) => Some(Database::Embedded { data_dir, throw_away: false }),
            (Some(url), None) => Some(Database::Url(url)),
            (None, None) => None,
        }
    }

    /// The database that was named; a server must not guess where its truth lives.
    ///
    /// # Errors
    /// When none was.
    pub fn required(self) -> Result<Database, Failure> {
        self.named().ok_or_else(|| {
            Failure::usage(
                "name a database: --database-url (or DATABASE_URL), or --data-dir for an embedded one",
            )
        })
    }
}

/// Runs it until a signal.
///
/// # Errors
/// When it cannot start, or a part of it ends by itself.
pub async fn run(args: ServeArgs) -> Outcome {
    let options = ServerOptions {
        role: args.role,
        database: args.database.required()?,
        listen: args.listen.listen,
        broker_listen: args.listen.broker_listen,
        builtin_worker: false,
    };
    until_signal(options, |_| {}).await
}

/// Starts a server, says where it is, and stops it in order at the first Ctrl-C or SIGTERM.
///
/// # Errors
/// When it cannot start, or a part of it ends by itself.
pub async fn until_signal(options: ServerOptions, started: impl FnOnce(&RunningServer)) -> Outcome {
    let shutdown = CancellationToken::new();
    // Signals are listened for before anything is started, so that none can end the process half way.
    let signal = server::signal()?;
    let running = server::run(options, shutdown.clone()).await?;
    announce(&running);
    started(&running);
    let stopped = running.stopped(async {
        signal.await;
        console::note("stopping");
    });
    stopped.await?;
    Ok(())
}

/// Tells where everything is.
pub fn announce(running: &RunningServer) {
    console::note(format_args!("  data     {}", running.database));
    if let Some(http) = running.http {
        console::note(format_args!("  API      http://{http}/graphql"));
        console::note(format_args!("  health   http://{http}/readyz, metrics http://{http}/metrics"));
    }
    if let Some(broker) = running.broker {
        console::note(format_args!("  workers  http://{broker}"));
    }
}
