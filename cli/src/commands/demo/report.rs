//! What the demo did, in numbers.

use crate::client::Client;
use crate::commands::tree;
use crate::convergence::{self, Wanted};
use crate::exit::{Failure, Outcome};
use crate::{console, duration};
use anyhow::Context;
use std::time::Duration;

/// The counter of tasks that the server gave to workers.
const DISPATCHED: &str = "converge_tasks_dispatched_total";

/// The server's counters at one moment.
pub struct Reading {
    position: u64,
    /// None when the server does not count.
    dispatched: Option<u64>,
}

impl Reading {
    /// Reads them now.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn take(client: &Client) -> Result<Self, Failure> {
        let position = convergence::position_now(client).await?;
        let metrics = client.metrics().await.context("cannot read the server's metrics")?;
        Ok(Self { position, dispatched: sum(&metrics, DISPATCHED) })
    }
}

/// The sum of a counter over all its labels, in Prometheus' text format.
fn sum(metrics: &str, name: &str) -> Option<u64> {
    let samples = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        // `name{…} 42` or `name 42`, but not `name_of_another 42`.
        let value = match rest.strip_prefix('{') {
            Some(labelled) => labelled.rsplit_once("} ")?.1,
            None => rest.strip_prefix(' ')?,
        };
        value.split_whitespace().next()?.parse::<u64>().ok()
    });
    samples.fold(None, |sum, sample| Some(sum.unwrap_or(0) + sample))
}

/// Prints the composition's summary and what it took.
///
/// # Errors
/// When the server cannot be reached any more, or stdout is closed.
pub async fn print(
    client: &Client,
    wanted: &[Wanted],
    before: &Reading,
    after: &Reading,
    elapsed: Duration,
) -> Outcome {
    for root in wanted {
        let nodes = tree::fetch(client, &root.reference, Some(after.position)).await?;
        console::print(format_args!("{} is Ready", root.reference))?;
        console::print(format_args!("\n{}\n", tree::summary(&nodes)))?;
        console::print(format_args!("children          {}", nodes.len().saturating_sub(1)))?;
    }
    let secs = elapsed.as_secs_f64();
    console::print(format_args!("elapsed           {}", precise(elapsed)))?;
    console::print(format_args!("events appended   {}", after.position - before.position))?;
    if let Some(dispatched) = after.dispatched {
        let reconciles = dispatched - before.dispatched.unwrap_or_default();
        console::print(format_args!("reconciles        {reconciles}"))?;
        // Tasks given to workers, attempts that failed included: the rate at which the loop turns.
        console::print(format_args!("reconciles/s      {:.0}", reconciles as f64 / secs))?;
    }
    Ok(())
}

fn precise(elapsed: Duration) -> String {
    if elapsed < Duration::from_secs(120) {
        format!("{:.1}s", elapsed.as_secs_f64())
    } else {
        duration::coarse(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_summed_over_its_labels_and_not_with_its_namesakes() {
        let metrics = "# TYPE converge_tasks_dispatched_total counter\n\
                       converge_tasks_dispatched_total{kind=\"a } b\"} 40\n\
                       converge_tasks_dispatched_total 2 1700000000\n\
                       converge_tasks_dispatched_total_created 7\n";
        assert_eq!(sum(metrics, DISPATCHED), Some(42));
        assert_eq!(sum("other 1\n", DISPATCHED), None);
    }
}
