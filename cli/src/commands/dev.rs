//! `converge dev`: everything in one command, to work against.

use super::serve::{DatabaseArgs, ListenArgs, until_signal};
use crate::console;
use crate::exit::Outcome;
use crate::server::{Database, Role, ServerOptions};
use clap::Args;

/// Starts everything in one process, on an embedded PostgreSQL unless a database is named.
///
/// Without --data-dir the data lives where this user's programs keep theirs, and is there again next time.
#[derive(Debug, Args)]
pub struct DevArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Runs it until a signal.
///
/// # Errors
/// When it cannot start, or a part of it ends by itself.
pub async fn run(args: DevArgs) -> Outcome {
    let database = args.database.named().unwrap_or_else(|| Database::Embedded {
        data_dir: embedded_postgres::default_data_dir("dev"),
        throw_away: false,
    });
    let options = ServerOptions {
        role: Role::All,
        database,
        listen: args.listen.listen,
        broker_listen: args.listen.broker_listen,
        builtin_worker: true,
    };
    console::note("converge is starting");
    until_signal(options, |running| {
        if let Some(http) = running.http {
            console::note("");
            if http.port() != 8080 {
                console::note(format_args!("  export CONVERGE_SERVER=http://{http}"));
            }
            console::note("  converge apply -f examples/landing-zone/kinds");
            console::note("  converge list kind");
            console::note("Ctrl-C stops it; the data stays.");
        }
    })
    .await
}
