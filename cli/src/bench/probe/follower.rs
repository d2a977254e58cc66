//! One subscriber that follows all the while: a few names from the start, the middle and the end of the run, or everything.
//! The server looks at every event for either, and sends what is asked for; `docs/benchmarks.md` has what that costs.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{Connection, Row};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::samples::{Percentiles, Samples};
use super::super::server::BenchServer;
use super::super::socket::Socket;

/// What came.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Followed {
    /// It followed every event.
    pub all: bool,
    pub events: i64,
    /// Events that were in the log for it but not here when the run was over.
    pub behind_at_end: i64,
    /// From the time in the event, which is read just before its commit, until it was here.
    pub delivery: Percentiles,
    /// Why it heard no more, if it was cut off.
    pub error: Option<String>,
}

/// A task that follows until it is stopped.
pub struct Follower {
    from: i64,
    /// Beginnings of names; none: everything.
    prefixes: Vec<String>,
    listening: JoinHandle<Followed>,
}

#[derive(Deserialize)]
struct Data {
    item: Event,
}

#[derive(Deserialize)]
struct Event {
    position: String,
    at: DateTime<Utc>,
}

impl Follower {
    /// Follows what is behind `from`: resources whose names begin as one of `prefixes`, or everything if there are none.
    pub async fn start(
        http: &str,
        from: i64,
        prefixes: Vec<String>,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let mut socket = Socket::connect(http).await?;
        let from_text = from.to_string();
        if prefixes.is_empty() {
            socket.subscribe(0, include_str!("events.graphql"), &json!({ "from": from_text })).await?;
        }
        for (id, prefix) in (0..).zip(&prefixes) {
            let variables = json!({ "filter": {"namePrefix": prefix}, "from": from_text });
            socket.subscribe(id, include_str!("changes.graphql"), &variables).await?;
        }
        let listening = tokio::spawn(follow(socket, stop));
        Ok(Self { from, prefixes, listening })
    }

    /// What came, of a log that ended at `end`.
    pub async fn followed(self, server: &BenchServer, end: i64) -> anyhow::Result<Followed> {
        let followed = self.listening.await?;
        let due = if self.prefixes.is_empty() {
            end - self.from
        } else {
            let mut connection = server.connect().await?;
            let due = sqlx::query(include_str!("due.sql"))
                .bind(self.from)
                .bind(end)
                .bind(&self.prefixes)
                .fetch_one(&mut connection)
                .await?
                .try_get(0)?;
            connection.close().await?;
            due
        };
        let behind_at_end = (due - followed.events).max(0);
        Ok(Followed { all: self.prefixes.is_empty(), behind_at_end, ..followed })
    }
}

async fn follow(mut socket: Socket, stop: CancellationToken) -> Followed {
    let mut followed = Followed::default();
    let mut delivery = Samples::default();
    let mut last = HashMap::<u32, i64>::new();
    loop {
        let next = tokio::select! {
            () = stop.cancelled() => break,
            next = socket.next::<Data>() => next,
        };
        let read = next.and_then(|(id, data)| Ok((id, data.item.position.parse::<i64>()?, data.item.at)));
        match read {
            Ok((id, position, at)) => {
                followed.events += 1;
                delivery.add((Utc::now() - at).to_std().unwrap_or_default());
                let before = last.insert(id, position).unwrap_or(0);
                if position <= before {
                    followed.error = Some(format!("{position} came behind {before}"));
                    break;
                }
            }
            Err(error) => {
                followed.error = Some(format!("{error:#}"));
                break;
            }
        }
    }
    Followed { delivery: delivery.percentiles(), ..followed }
}
