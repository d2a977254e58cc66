//! Repository chores in Rust, so that they run the same on every machine that can build the project: the test
//! run with its database server, and the rules that no compiler checks.

mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// `cargo xtask …`
#[derive(Parser)]
#[command(name = "cargo xtask", about = "Repository chores")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Runs the workspace's tests against one throw-away PostgreSQL server.
    Test {
        /// Passed on to `cargo test`; without any, the whole workspace is tested.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Checks the repository's rules: direction of dependencies, file headers, migrations, lengths, purity.
    Tidy {
        /// Freezes the migrations that are not frozen yet, for a release.
        #[arg(long)]
        release_migrations: bool,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().chore {
        Chore::Test { arguments } => test::run(&arguments).await,
        Chore::Tidy { release_migrations } => tidy::run(&root(), release_migrations),
    }
}

/// The workspace's directory: this crate's parent, also when a chore is called from a subdirectory.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
