//! Questions at a fixed rate: by turns one resource and one page of resources.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::super::random::Random;
use super::super::samples::{Percentiles, Samples};
use crate::client::operations::Operation;
use crate::client::{Client, operations};

const PAGE: u32 = 100;

/// What to ask for.
pub struct Target {
    pub kind: String,
    pub name: String,
    /// A beginning of names that a page's worth of resources share.
    pub prefix: String,
}

/// How long answers took.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Answers {
    pub resource: Percentiles,
    pub page: Percentiles,
    /// Questions that were refused or not answered; the last of these errors.
    pub errors: usize,
    pub last_error: Option<String>,
}

/// A task that asks until it is stopped.
pub struct Questions(JoinHandle<Answers>);

impl Questions {
    pub fn start(
        client: Client,
        rate: u32,
        seed: u64,
        n: u32,
        target: Arc<dyn Fn(u32) -> Target + Send + Sync>,
        stop: CancellationToken,
    ) -> Self {
        Self(tokio::spawn(ask(client, rate, Random::new(seed), n, target, stop)))
    }

    pub async fn answers(self) -> anyhow::Result<Answers> {
        Ok(self.0.await?)
    }
}

async fn ask(
    client: Client,
    rate: u32,
    mut random: Random,
    n: u32,
    target: Arc<dyn Fn(u32) -> Target + Send + Sync>,
    stop: CancellationToken,
) -> Answers {
    let (mut resource, mut page) = (Samples::default(), Samples::default());
    let mut answers = Answers::default();
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_u64.. {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => {}
        }
        let of = target(random.below(n));
        let (samples, operation, variables) = if round.is_multiple_of(2) {
            (&mut resource, operations::RESOURCE, json!({ "kind": of.kind, "name": of.name }))
        } else {
            let filter = json!({ "kind": of.kind, "namePrefix": of.prefix });
            let variables = json!({
                "filter": filter, "first": PAGE, "after": null, "wide": true, "columns": false, "full": false,
            });
            (&mut page, operations::RESOURCES, variables)
        };
        match answer(&client, operation, variables).await {
            Ok(took) => samples.add(took),
            Err(error) => {
                answers.errors += 1;
                answers.last_error = Some(format!("{error:#}"));
            }
        }
    }
    Answers { resource: resource.percentiles(), page: page.percentiles(), ..answers }
}

async fn answer(client: &Client, operation: Operation, variables: Value) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let _: Value = client.ask(operation, variables).await?;
    Ok(start.elapsed())
}
