//! Many subscriptions on few connections, each with a filter of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::super::samples::{Percentiles, Samples};
use super::super::socket::Socket;
use super::super::tree::Trees;
use super::super::worker::ROOT;
use super::Expected;

const POLL: Duration = Duration::from_millis(20);

/// What they got.
#[derive(Debug, Clone, Serialize)]
pub struct Heard {
    pub events: u64,
    /// From the time in the event, which is read just before its commit, until it was delivered.
    pub delivery: Percentiles,
    /// How long the last of them still waited once every root was Ready and counted.
    pub late_seconds: f64,
}

/// What one of them asks for.
#[derive(Debug, Clone)]
enum Filter {
    /// A domain of some root: a hundred resources and all that happens to them.
    Domain(String),
    /// One root alone.
    Root(String),
    /// All roots.
    Roots,
    /// Whatever goes wrong.
    Trouble,
}

impl Filter {
    /// One half follows a domain, one half a root; two in a hundred look at the fleet.
    fn of(subscriber: u32, trees: &Trees) -> Self {
        let drawn = trees.draw(subscriber);
        match subscriber % 100 {
            0 => Self::Roots,
            1 => Self::Trouble,
            other if other % 2 == 0 => Self::Domain(trees.target(drawn).prefix),
            _ => Self::Root(trees.root_name(drawn / trees.children)),
        }
    }

    fn variable(&self) -> Value {
        match self {
            Self::Domain(prefix) => json!({ "namePrefix": prefix }),
            Self::Root(name) => json!({ "kind": ROOT, "namePrefix": name }),
            Self::Roots => json!({ "kind": ROOT }),
            Self::Trouble => json!({ "phase": ["Failed", "Degraded"] }),
        }
    }

    fn expected(&self, expected: &Expected) -> u64 {
        match self {
            Self::Domain(prefix) => expected.domains.get(prefix).copied().unwrap_or(0),
            Self::Root(name) => expected.roots.get(name).copied().unwrap_or(0),
            Self::Roots => expected.roots.values().sum(),
            // Nothing fails in this scenario; it fails itself if something does.
            Self::Trouble => 0,
        }
    }
}

/// Tasks that listen until they are stopped.
pub struct Subscribers {
    filters: Vec<Filter>,
    counts: Arc<Vec<AtomicU64>>,
    listening: JoinSet<anyhow::Result<Samples>>,
    stop: CancellationToken,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    resource_changed: Change,
}

#[derive(Deserialize)]
struct Change {
    position: String,
    at: DateTime<Utc>,
}

impl Subscribers {
    /// Starts them, each from position `from`.
    pub async fn start(
        http: &str,
        subscribers: u32,
        on_one_connection: u32,
        trees: &Trees,
        from: i64,
    ) -> anyhow::Result<Self> {
        let filters: Vec<Filter> = (0..subscribers).map(|number| Filter::of(number, trees)).collect();
        let counts: Arc<Vec<AtomicU64>> = Arc::new(filters.iter().map(|_| AtomicU64::new(0)).collect());
        let (stop, mut listening) = (CancellationToken::new(), JoinSet::new());
        for first in (0..subscribers).step_by(usize::try_from(on_one_connection)?) {
            let mut socket = Socket::connect(http).await?;
            let end = subscribers.min(first + on_one_connection);
            for number in first..end {
                let filter = filters.get(usize::try_from(number)?).map(Filter::variable);
                let variables = json!({ "filter": filter, "from": from.to_string() });
                socket.subscribe(number, include_str!("changes.graphql"), &variables).await?;
            }
            listening.spawn(listen(socket, Arc::clone(&counts), stop.clone()));
        }
        Ok(Self { filters, counts, listening, stop })
    }

    /// Waits until each has got all that it should, and no more.
    pub async fn finish(mut self, expected: &Expected, timeout_seconds: u64) -> anyhow::Result<Heard> {
        let start = Instant::now();
        let due: Vec<u64> = self.filters.iter().map(|filter| filter.expected(expected)).collect();
        let got = |number: usize| self.counts.get(number).map_or(0, |count| count.load(Ordering::Relaxed));
        let behind = || due.iter().enumerate().find(|(number, due)| got(*number) < **due);
        while let Some((number, due)) = behind() {
            if let Some(ended) = self.listening.try_join_next() {
                ended?.context("a connection of subscribers has ended")?;
                bail!("a connection of subscribers has ended");
            }
            ensure!(
                start.elapsed().as_secs() < timeout_seconds,
                "subscriber {number} ({:?}) has got {} of {due} events",
                self.filters.get(number),
                got(number)
            );
            tokio::time::sleep(POLL).await;
        }
        let late_seconds = start.elapsed().as_secs_f64();
        self.stop.cancel();
        let mut delivery = Samples::default();
        while let Some(samples) = self.listening.join_next().await {
            delivery.extend(samples??);
        }
        for (number, due) in due.iter().enumerate() {
            let count = got(number);
            ensure!(
                count == *due,
                "subscriber {number} ({:?}) has got {count} events and not {due}",
                self.filters.get(number)
            );
        }
        Ok(Heard { events: due.iter().sum(), delivery: delivery.percentiles(), late_seconds })
    }
}

/// Reads one connection. Each subscription's positions must rise, so that the right number of events are the right events.
async fn listen(
    mut socket: Socket,
    counts: Arc<Vec<AtomicU64>>,
    stop: CancellationToken,
) -> anyhow::Result<Samples> {
    let mut delivery = Samples::default();
    let mut last = std::collections::HashMap::<u32, u64>::new();
    loop {
        let (number, Data { resource_changed: change }) = tokio::select! {
            () = stop.cancelled() => return Ok(delivery),
            next = socket.next::<Data>() => next?,
        };
        delivery.add((Utc::now() - change.at).to_std().unwrap_or_default());
        let position: u64 = change.position.parse()?;
        let before = last.insert(number, position).unwrap_or(0);
        ensure!(before < position, "subscriber {number} got {position} behind {before}");
        let count = counts.get(usize::try_from(number)?).context("an answer to nobody")?;
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_look_at_different_things() {
        let trees = Trees { prefix: "b-", n: 5000, children: 1000, rollup: true, seed: 1 };
        let filters: Vec<Filter> = (0..200).map(|number| Filter::of(number, &trees)).collect();
        let domains = filters.iter().filter(|filter| matches!(filter, Filter::Domain(_))).count();
        let fleet = filters.iter().filter(|filter| matches!(filter, Filter::Roots | Filter::Trouble)).count();
        assert_eq!((domains, fleet), (98, 4));
        let one: std::collections::HashSet<String> =
            filters.iter().map(|filter| filter.variable().to_string()).collect();
        assert!(one.len() > 40, "{}", one.len());
    }
}
