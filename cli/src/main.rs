//! The one binary: client, server and worker, told apart by the first word.

mod bench;
mod client;
mod commands;
mod console;
mod convergence;
mod documents;
mod duration;
mod exit;
mod output;
mod progress;
mod reference;
mod server;
mod targets;
mod telemetry;

use clap::{CommandFactory, Parser, Subcommand};
use client::Client;
use exit::{Failure, Outcome};
use std::process::ExitCode;

// The store's batches and the API's answers are many small, short-lived allocations on many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Declares what should be, and shows what is.
#[derive(Debug, Parser)]
#[command(name = "converge", version, propagate_version = true, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 not converged in time, 4 conflict, 5 not found."
)]
struct Cli {
    /// The API's address
    #[arg(
        long,
        global = true,
        env = "CONVERGE_SERVER",
        value_name = "URL",
        default_value = "http://localhost:8080"
    )]
    server: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Apply(commands::apply::ApplyArgs),
    Get(commands::get::GetArgs),
    List(commands::list::ListArgs),
    Describe(commands::describe::DescribeArgs),
    Tree(commands::tree::TreeArgs),
    Wait(commands::wait::WaitArgs),
    Events(commands::events::EventsArgs),
    Delete(commands::delete::DeleteArgs),
    Graph(commands::graph::GraphArgs),
    Summary(commands::summary::SummaryArgs),
    /// Sets resources aside: nothing is scheduled, no value flows in, their owners leave them out
    Quarantine(commands::act::ActArgs),
    /// Ends quarantines; what was applied meanwhile is reconciled
    Release(commands::act::ReconcileArgs),
    /// Has resources looked at again; Failed ones are tried again
    Resync(commands::act::ReconcileArgs),
    Abandon(commands::act::AbandonArgs),
    ConfirmPrune(commands::act::ConfirmPruneArgs),
    Completion(commands::completion::CompletionArgs),
    Dev(commands::dev::DevArgs),
    Demo(commands::demo::DemoArgs),
    Serve(commands::serve::ServeArgs),
    Worker(commands::worker::WorkerArgs),
    Migrate(commands::migrate::MigrateArgs),
    /// Measures the engine beside plain SQL on the same server
    Bench(bench::BenchArgs),
    /// The worker of `bench reconcile`
    #[command(name = bench::NOOP_WORKER, hide = true)]
    NoopWorker,
}

impl Command {
    /// Servers tell what they do; clients speak when something is wrong. The pool's own remarks are left out:
    /// what a lost connection means is told by whoever needed it.
    const fn log_level(&self) -> &'static str {
        match self {
            Self::Serve(_) | Self::Worker(_) | Self::Dev(_) => "info,sqlx_core::pool=error",
            _ => "warn,sqlx_core::pool=error",
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn start(cli: Cli) -> Outcome {
    telemetry::start(cli.command.log_level()).map_err(Failure::usage)?;
    // Several dependencies speak TLS; the first to do so without a provider in place would panic. A second
    // installation cannot happen here, so the answer tells nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Boxed: the commands' futures are large, and this one lies on the main thread's stack.
    runtime.block_on(Box::pin(run(cli)))
}

async fn run(cli: Cli) -> Outcome {
    let client = || Client::new(&cli.server);
    match cli.command {
        Command::Apply(args) => commands::apply::run(args, &client()?).await,
        Command::Get(args) => commands::get::run(args, &client()?).await,
        Command::List(args) => commands::list::run(args, &client()?).await,
        Command::Describe(args) => commands::describe::run(args, &client()?).await,
        Command::Tree(args) => commands::tree::run(args, &client()?).await,
        Command::Wait(args) => commands::wait::run(args, &client()?).await,
        Command::Events(args) => commands::events::run(args, &client()?).await,
        Command::Delete(args) => commands::delete::run(args, &client()?).await,
        Command::Graph(args) => commands::graph::run(args, &client()?).await,
        Command::Summary(args) => commands::summary::run(args, &client()?).await,
        Command::Quarantine(args) => commands::act::quarantine(args, &client()?).await,
        Command::Release(args) => commands::act::release(args, &client()?).await,
        Command::Resync(args) => commands::act::resync(args, &client()?).await,
        Command::Abandon(args) => commands::act::abandon(args, &client()?).await,
        Command::ConfirmPrune(args) => commands::act::confirm_prune(args, &client()?).await,
        Command::Completion(args) => commands::completion::run(&args, Cli::command()),
        Command::Dev(args) => commands::dev::run(args).await,
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Serve(args) => commands::serve::run(args).await,
        Command::Worker(args) => commands::worker::run(args).await,
        Command::Migrate(args) => commands::migrate::run(args).await,
        Command::Bench(args) => Ok(bench::run(args).await?),
        Command::NoopWorker => Ok(bench::noop_worker().await?),
    }
}
