//! One subscriber that follows everything.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::samples::{Percentiles, Samples};
use super::super::socket::Socket;

/// What came.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Followed {
    pub events: i64,
    /// Events that were in the log but not here when the run was over.
    pub behind_at_end: i64,
    /// From the time in the event, which is read just before its commit, until it was here.
    pub delivery: Percentiles,
    /// Why it heard no more, if it was cut off.
    pub error: Option<String>,
}

/// A task that follows until it is stopped.
pub struct Follower(JoinHandle<(i64, Followed)>);

#[derive(Deserialize)]
struct Data {
    events: Event,
}

#[derive(Deserialize)]
struct Event {
    position: String,
    at: DateTime<Utc>,
}

impl Follower {
    pub async fn start(http: &str, from: i64, stop: CancellationToken) -> anyhow::Result<Self> {
        let mut socket = Socket::connect(http).await?;
        socket.subscribe(1, include_str!("events.graphql"), &json!({ "from": from.to_string() })).await?;
        Ok(Self(tokio::spawn(follow(socket, from, stop))))
    }

    /// What came, of a log that ended at `end`.
    pub async fn followed(self, end: i64) -> anyhow::Result<Followed> {
        let (last, followed) = self.0.await?;
        Ok(Followed { behind_at_end: (end - last).max(0), ..followed })
    }
}

async fn follow(mut socket: Socket, mut last: i64, stop: CancellationToken) -> (i64, Followed) {
    let mut followed = Followed::default();
    let mut delivery = Samples::default();
    loop {
        let next = tokio::select! {
            () = stop.cancelled() => break,
            next = socket.next::<Data>() => next,
        };
        let parsed = next.and_then(|(_, data)| Ok((data.events.position.parse::<i64>()?, data.events.at)));
        match parsed {
            Ok((position, _)) if position != last + 1 => {
                followed.error = Some(format!("{position} came behind {last}"));
                break;
            }
            Ok((position, at)) => {
                last = position;
                followed.events += 1;
                delivery.add(late(at));
            }
            Err(error) => {
                followed.error = Some(format!("{error:#}"));
                break;
            }
        }
    }
    (last, Followed { delivery: delivery.percentiles(), ..followed })
}

/// How long ago that was, if the clocks agree.
pub fn late(at: DateTime<Utc>) -> Duration {
    (Utc::now() - at).to_std().unwrap_or_default()
}
