//! The end of everything: all roots are deleted, and what they own goes with them.

use std::time::Instant;

use anyhow::ensure;
use serde::Serialize;
use sqlx::{Connection, Row};

use super::super::cost::{Cost, Meter};
use super::super::log::{self, Appended, Span};
use super::super::processes::Processes;
use super::super::server::BenchServer;
use super::super::tree::Trees;
use super::super::worker::ROOT;
use super::super::{load, phases};

/// Requests in flight.
const CLIENTS: u32 = 4;

/// What deleting took.
#[derive(Debug, Serialize)]
pub struct Deleted {
    /// Children and roots.
    pub resources: u32,
    pub seconds: f64,
    pub resources_per_second: f64,
    #[serde(flatten)]
    pub appended: Appended,
    #[serde(flatten)]
    pub cost: Cost,
}

/// Deletes every root, waits for the end, and makes sure that nothing is left.
pub async fn run(
    trees: &Trees,
    server: &BenchServer,
    processes: &Processes,
    timeout: u64,
) -> anyhow::Result<Deleted> {
    let client = processes.client()?;
    let resources = trees.n + trees.roots();
    let names: Vec<String> = (0..trees.roots()).map(|root| trees.root_name(root)).collect();
    let before = log::end(server).await?;
    let meter = Meter::start(server, processes).await?;
    let start = Instant::now();
    load::delete_all(&client, CLIENTS, ROOT, &names).await?;
    phases::wait(processes, timeout, |phases| phases.total() == 0).await?;
    let seconds = start.elapsed().as_secs_f64();
    let cost = meter.stop(server, resources).await?;

    let span = Span::behind(server, before).await?;
    span.once_each("DeletionRequested", resources)?;
    span.once_each("FinalizerStripped", resources)?;
    span.once_each("Deleted", resources)?;
    let mut connection = server.connect().await?;
    let row = sqlx::query(include_str!("left.sql")).fetch_one(&mut connection).await?;
    for what in ["heads", "edges", "queued", "claims"] {
        let left: i64 = row.try_get(what)?;
        ensure!(left == 0, "{left} {what} are left of what was deleted");
    }
    connection.close().await?;
    Ok(Deleted {
        resources,
        seconds,
        resources_per_second: f64::from(resources) / seconds,
        appended: span.appended(seconds),
        cost,
    })
}

impl std::fmt::Display for Deleted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} resources in {:.2} s, {:.0} resources/s",
            self.resources, self.seconds, self.resources_per_second
        )
    }
}
