//! `converge demo`: the landing zone from nothing to Ready, before one's eyes.
//!
//! The server runs in this process, on a PostgreSQL of its own; the worker is a separate process, as it is
//! in earnest. Everything after the start goes through the public API, exactly as a user's commands would.

mod acts;
mod assets;
mod report;
mod worker;

use super::{apply, serve};
use crate::client::Client;
use crate::console;
use crate::convergence::{self, Patience};
use crate::documents::{self, Document, Head};
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::progress::Progress;
use crate::server::{self, Database, Role, ServerOptions};
use clap::Args;
use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use worker::{Knobs, Worker};

/// Builds a landing zone of 58 functional domains from one document and shows it grow; then edits it, takes a domain away, and
/// takes everything down in reverse order (`--keep` leaves it standing).
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Stay up when it is Ready, to look around
    #[arg(long)]
    keep: bool,
    /// Keep the data in this folder; without it, it goes when the demo ends
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where the API listens; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where workers connect; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    broker_listen: SocketAddr,
    /// Another bill of materials
    #[arg(long, value_name = "FILE")]
    bom: Option<PathBuf>,
    #[command(flatten)]
    knobs: Knobs,
    /// How long it may take to become Ready
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
}

/// Runs it.
///
/// # Errors
/// [`Exit::Failed`] when something failed for good, [`Exit::NotConverged`] when time
/// is up before the root is Ready.
pub async fn run(args: DemoArgs) -> Outcome {
    let bom = match &args.bom {
        Some(file) => documents::load(std::slice::from_ref(file), Some("resource"))?,
        None => assets::bom()?,
    };
    let throw_away = args.data_dir.is_none();
    let data_dir = args.data_dir.clone().unwrap_or_else(fresh_data_dir);
    let options = ServerOptions {
        role: Role::All,
        database: Database::Embedded { data_dir, throw_away },
        listen: args.listen,
        broker_listen: args.broker_listen,
        builtin_worker: false,
    };
    let signal = server::signal()?;
    let shutdown = CancellationToken::new();
    console::note("starting PostgreSQL and the server");
    let running = server::run(options, shutdown.clone()).await?;
    serve::announce(&running);
    let (Some(http), Some(broker)) = (running.http, running.broker) else {
        return Err(anyhow::anyhow!("the server has no listeners").into());
    };
    let ready = Cell::new(false);
    // The show ends the server, and a signal or a broken server ends the show; both lead to one orderly stop.
    let show = async {
        let shown = Box::pin(show(&args, bom, http, broker, &ready)).await;
        shutdown.cancel();
        shown
    };
    let stop = {
        let shutdown = shutdown.clone();
        async move {
            tokio::select! {
                () = signal => console::note("stopping"),
                () = shutdown.cancelled() => {}
            }
        }
    };
    let (shown, stopped) = {
        let show = async {
            tokio::select! {
                biased;
                shown = show => shown,
                () = shutdown.cancelled() => interrupted(&ready),
            }
        };
        tokio::join!(show, running.stopped(stop))
    };
    shown?;
    stopped?;
    Ok(())
}

/// The part that a user could type: apply, wait, look.
async fn show(
    args: &DemoArgs,
    bom: Vec<Document>,
    http: SocketAddr,
    broker: SocketAddr,
    ready: &Cell<bool>,
) -> Outcome {
    let root = bom.first().map(|document| document.head.clone()).unwrap_or_default();
    let client = Client::new(&format!("http://{http}"))?;
    let mut worker = Worker::start(broker, &args.knobs)?;
    let shown = tokio::select! {
        shown = reconcile(&client, args, bom) => shown,
        // Without its worker the demo would only wait until time is up.
        ended = worker.ended() => Err(ended),
    };
    ready.set(shown.is_ok());
    if shown.is_ok() && args.keep {
        hint(http, broker, &root);
        // Until a signal drops this future, and with it the worker; an ended worker is news, not the end.
        let ended = worker.ended().await;
        console::note(format_args!("{ended}"));
        std::future::pending::<()>().await;
    }
    worker.stop().await;
    shown
}

async fn reconcile(client: &Client, args: &DemoArgs, bom: Vec<Document>) -> Outcome {
    let kinds = apply::send(client, assets::kinds()?, Some("kind"), |_| Ok(())).await?;
    let kinds: usize = kinds.iter().map(|payload| payload.results.len()).sum();
    console::note(format_args!("{kinds} kinds applied"));
    let before = report::Reading::take(client).await?;
    let started = Instant::now();
    let bill = acts::Bill::read(&bom);
    let payloads = apply::send(client, bom, Some("resource"), |payload| {
        for result in &payload.results {
            console::note(format_args!("{} {}", apply::subject(result), result.verb));
        }
        Ok(())
    })
    .await?;
    let wanted = apply::wanted(&payloads);
    if wanted.is_empty() {
        return Err(Failure::usage("the BOM holds no resource"));
    }
    let position = payloads.iter().map(|payload| payload.position).max().unwrap_or_default();
    let patience = Patience::new(client, args.timeout);
    {
        let mut progress = Progress::start();
        convergence::all_ready(client, &wanted, position, &patience, &mut progress).await?;
    }
    let elapsed = started.elapsed();
    let after = report::Reading::take(client).await?;
    report::print(client, &wanted, &before, &after, elapsed).await?;
    match (bill, wanted.as_slice()) {
        (Some(bill), [root]) => acts::play(client, bill, root, args.keep, &patience).await,
        _ => Ok(()),
    }
}

/// A folder that is nobody's yet. PostgreSQL's user must be able to reach it, so it lies in the temporary
/// directory itself and not below one that only we may enter.
fn fresh_data_dir() -> PathBuf {
    std::env::temp_dir().join(format!("converge-demo-{}", uuid::Uuid::now_v7().simple()))
}

/// Whoever stops the demo before its end has not seen it succeed.
fn interrupted(ready: &Cell<bool>) -> Outcome {
    if ready.get() { Ok(()) } else { Err(Failure::new(Exit::Failed, "stopped before the root was Ready")) }
}

fn hint(http: SocketAddr, broker: SocketAddr, root: &Head) {
    let root =
        format!("{}/{}", root.kind.as_deref().unwrap_or("KIND"), root.name.as_deref().unwrap_or("NAME"));
    console::note("");
    console::note("It stays up; Ctrl-C ends it. In another terminal:");
    console::note(format_args!("  export CONVERGE_SERVER=http://{http}"));
    console::note("  converge list resource --phase Reconciling --watch");
    console::note(format_args!("  converge tree {root} --depth 1"));
    console::note(format_args!("  converge describe {root}"));
    console::note("  converge events --follow");
    console::note(format_args!("Workers connect to http://{broker}."));
}
