//! Waiting until resources are in the phase that they should reach.
//!
//! The summary is a read model that follows the log; what it shows is true, if a moment late, so the time until it shows
//! the end is an upper bound.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::json;

use super::processes::Processes;
use crate::client::model::{ResourcesAnswer, SummaryAnswer};
use crate::client::{Client, operations};

/// How exact the end of a short run is, and how often a long one is asked.
const POLL: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(20);
const LONG_POLL: Duration = Duration::from_millis(100);

/// How many resources of each kind are in each phase.
pub struct Phases(Vec<(String, String, u64)>);

impl Phases {
    pub async fn now(client: &Client) -> anyhow::Result<Self> {
        let answer: SummaryAnswer = client.ask(operations::SUMMARY, json!({ "root": null })).await?;
        Ok(Self(answer.summary.counts.into_iter().map(|of| (of.kind, of.phase, of.count)).collect()))
    }

    /// Of one kind in one phase.
    pub fn of(&self, kind: &str, phase: &str) -> u64 {
        let of = self.0.iter().filter(|(k, p, _)| k == kind && p == phase);
        of.map(|(.., count)| count).sum()
    }

    fn in_phase(&self, phase: &str) -> u64 {
        self.0.iter().filter(|(_, p, _)| p == phase).map(|(.., count)| count).sum()
    }

    /// Of everything.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(.., count)| count).sum()
    }
}

impl std::fmt::Display for Phases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (kind, phase, count) in &self.0 {
            write!(f, "{count} {kind} {phase}; ")?;
        }
        Ok(())
    }
}

/// Waits until the phases are as wanted; fails at the first resource that fails, which no scenario foresees, and when
/// `timeout_seconds` have passed since now.
pub async fn wait(
    processes: &Processes,
    timeout_seconds: u64,
    wanted: impl Fn(&Phases) -> bool,
) -> anyhow::Result<Phases> {
    let client = processes.client()?;
    let (start, timeout) = (Instant::now(), Duration::from_secs(timeout_seconds));
    loop {
        let phases = Phases::now(&client).await?;
        if wanted(&phases) {
            return Ok(phases);
        }
        if phases.in_phase("Failed") > 0 {
            bail!("{}; {phases}", first_failure(&client).await?);
        }
        ensure!(
            start.elapsed() < timeout,
            "not done after {timeout_seconds} s: {phases}\n{}",
            processes.words()
        );
        tokio::time::sleep(if start.elapsed() < LONG { POLL } else { LONG_POLL }).await;
    }
}

async fn first_failure(client: &Client) -> anyhow::Result<String> {
    let variables = json!({
        "filter": {"phase": ["Failed"]}, "first": 1, "after": null, "wide": false, "columns": false, "full": true,
    });
    let answer: ResourcesAnswer = client.ask(operations::RESOURCES, variables).await?;
    Ok(answer.resources.nodes.first().map_or_else(
        || "a resource has failed".to_owned(),
        |resource| {
            let why = resource.last_failure.as_ref().map_or(&resource.why, |failure| &failure.message);
            format!("{}/{} has failed: {why}", resource.kind, resource.name)
        },
    ))
}
