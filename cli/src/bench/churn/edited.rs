//! One edition of all roots, with or without the worker's death in the middle.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use sqlx::{Connection, Row};

use super::super::cost::{Cost, Meter};
use super::super::log::{self, Appended, Span};
use super::super::phases;
use super::super::processes::Processes;
use super::super::server::BenchServer;
use super::super::tree::Trees;
use super::super::worker::ROOT;

const POLL: Duration = Duration::from_millis(5);

/// What an edit did.
#[derive(Debug, Serialize)]
pub struct Edited {
    /// Children whose spec changed.
    pub specs: u32,
    /// From the first `apply` until all of them are worked and every root is Ready again.
    pub seconds: f64,
    pub specs_per_second: f64,
    /// Children that composers looked at for it, changed or not.
    pub compared_per_second: f64,
    /// When the worker was killed, how many were worked then, and how long it took from then on.
    pub kill: Option<Kill>,
    #[serde(flatten)]
    pub appended: Appended,
    #[serde(flatten)]
    pub cost: Cost,
}

/// The worker's death.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Kill {
    pub after_seconds: f64,
    pub worked: i64,
    pub recovery_seconds: f64,
}

/// Applies an edition; with a pause, kills the worker when half is worked.
pub async fn run(
    trees: &Trees,
    server: &BenchServer,
    processes: &mut Processes,
    edition: u64,
    kill: Option<u64>,
    timeout: u64,
) -> anyhow::Result<Edited> {
    let client = processes.client()?;
    let specs = trees.edits(edition);
    ensure!(specs > 1, "1 % of {} is nothing to measure", trees.n);
    let before = log::end(server).await?;
    let meter = Meter::start(server, processes).await?;
    let start = Instant::now();
    trees.edit(&client, edition, kill.unwrap_or(0)).await?;
    let killed = match kill {
        Some(_) => {
            let worked = worked(server, before, specs / 2, timeout).await?;
            processes.replace_worker().await?;
            Some((start.elapsed(), worked))
        }
        None => None,
    };
    // Roots may be Ready for a moment before their edition is composed, so the work is counted first.
    worked(server, before, specs, timeout).await?;
    let roots = u64::from(trees.roots());
    phases::wait(processes, timeout, |phases| phases.of(ROOT, "Ready") == roots).await?;
    let took = start.elapsed();
    let cost = meter.stop(server, specs).await?;

    let span = Span::behind(server, before).await?;
    span.once_each("Worked", specs)?;
    span.once_each("Configured", specs + trees.roots())?;
    span.once_each("Composed", trees.roots())?;
    ensure!(span.count("Created") + span.count("Dropped") == 0, "an edit made or dropped children");
    trees.check_roots(&client).await?;
    let seconds = took.as_secs_f64();
    Ok(Edited {
        specs,
        seconds,
        specs_per_second: f64::from(specs) / seconds,
        compared_per_second: f64::from(trees.n) / seconds,
        kill: killed.map(|(at, worked)| Kill {
            after_seconds: at.as_secs_f64(),
            worked,
            recovery_seconds: (took - at).as_secs_f64(),
        }),
        appended: span.appended(seconds),
        cost,
    })
}

/// Waits until so many are worked; how many were.
async fn worked(server: &BenchServer, after: i64, wanted: u32, timeout_seconds: u64) -> anyhow::Result<i64> {
    let mut connection = server.connect().await?;
    let start = Instant::now();
    let worked = loop {
        let row = sqlx::query(include_str!("worked.sql")).bind(after).fetch_one(&mut connection).await?;
        let worked: i64 = row.try_get(0)?;
        if worked >= i64::from(wanted) {
            break worked;
        }
        ensure!(
            start.elapsed().as_secs() < timeout_seconds,
            "{worked} of {wanted} are worked after {timeout_seconds} s"
        );
        // Asking takes longer as the range grows, and must not become what is measured.
        tokio::time::sleep(POLL.max(start.elapsed() / 100)).await;
    };
    connection.close().await?;
    Ok(worked)
}

impl std::fmt::Display for Edited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} specs in {:.2} s, {:.0} specs/s, {:.0} children compared/s",
            self.specs, self.seconds, self.specs_per_second, self.compared_per_second
        )?;
        match self.kill {
            Some(kill) => write!(
                f,
                "; killed after {:.2} s with {} worked, done {:.2} s later",
                kill.after_seconds, kill.worked, kill.recovery_seconds
            ),
            None => Ok(()),
        }
    }
}
