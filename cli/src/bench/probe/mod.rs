//! Somebody else, while a large run is under way: asks for a resource or a page of them now and then, and follows all that
//! happens. A rate that is bought with an API that does not answer is no rate.

mod follower;
mod questions;

use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub use self::follower::Followed;
use self::follower::Follower;
use self::questions::Questions;
pub use self::questions::{Answers, Target};
use super::args::{EngineArgs, ProbeArgs};
use super::processes::Processes;
use super::server::BenchServer;

/// What somebody else has seen.
#[derive(Debug, Clone, Serialize)]
pub struct Probed {
    pub questions: Answers,
    pub subscriber: Followed,
}

/// Somebody else, running.
pub struct Probe {
    stop: CancellationToken,
    questions: Questions,
    follower: Follower,
}

impl Probe {
    /// Starts, unless it is switched off. `target` names a resource, known or soon known, for a number drawn below `n`.
    pub async fn start(
        server: &BenchServer,
        processes: &Processes,
        probe: &ProbeArgs,
        engine: &EngineArgs,
        n: u32,
        target: impl Fn(u32) -> Target + Send + Sync + 'static,
    ) -> anyhow::Result<Option<Self>> {
        if probe.no_probe {
            return Ok(None);
        }
        let stop = CancellationToken::new();
        let from = super::log::end(server).await?;
        let follower = Follower::start(processes.http(), from, stop.clone()).await?;
        let questions = Questions::start(
            processes.client()?,
            probe.probe_rate,
            engine.seed,
            n,
            Arc::new(target),
            stop.clone(),
        );
        Ok(Some(Self { stop, questions, follower }))
    }

    /// Stops, now that the log is at `end`.
    pub async fn stop(self, end: i64) -> anyhow::Result<Probed> {
        self.stop.cancel();
        Ok(Probed {
            questions: self.questions.answers().await?,
            subscriber: self.follower.followed(end).await?,
        })
    }
}

impl Probed {
    /// For people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let (questions, subscriber) = (&self.questions, &self.subscriber);
        let mut lines = vec![
            ("resource", questions.resource.to_string()),
            ("page of 100", questions.page.to_string()),
            (
                "subscriber",
                format!(
                    "{} events, {} behind at the end; commit to delivery {}",
                    subscriber.events, subscriber.behind_at_end, subscriber.delivery
                ),
            ),
        ];
        let errors = questions.last_error.iter().chain(&subscriber.error);
        lines.extend(errors.map(|error| ("refused", error.clone())));
        lines
    }
}
