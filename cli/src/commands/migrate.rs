//! `converge migrate`: bring a database's schema up to this build.

use super::serve::DatabaseArgs;
use crate::console;
use crate::exit::Outcome;
use crate::server;
use clap::Args;

/// Applies schema migrations; `serve` does so too, under the same lock.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Runs it.
///
/// # Errors
/// When the database cannot be reached, or was migrated by a newer build.
pub async fn run(args: MigrateArgs) -> Outcome {
    server::migrate(args.database.required()?).await?;
    console::print("the schema is up to date")?;
    Ok(())
}
