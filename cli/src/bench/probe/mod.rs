//! Somebody else, while a large run is under way: asks for a resource or a page of them now and then, and follows what
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
        let prefixes =
            if probe.follow_all { Vec::new() } else { sixths(n).map(|at| target(at).prefix).into() };
        let follower = Follower::start(processes.http(), from, prefixes, stop.clone()).await?;
        let client = processes.client()?;
        let questions =
            Questions::start(client, probe.probe_rate, engine.seed, n, Arc::new(target), stop.clone());
        Ok(Some(Self { stop, questions, follower }))
    }

    /// Hears and asks no more.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// What was seen until it was stopped, when the log was at `end`.
    pub async fn probed(self, server: &BenchServer, end: i64) -> anyhow::Result<Probed> {
        let questions = self.questions.answers().await?;
        Ok(Probed { questions, subscriber: self.follower.followed(server, end).await? })
    }
}

/// Places early, in the middle and late among `n`.
fn sixths(n: u32) -> [u32; 3] {
    [n / 6, n / 2, n - n / 6 - 1]
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
                    "{} events{}, {} behind at the end; commit to delivery {}",
                    subscriber.events,
                    if subscriber.all { ", all of them" } else { "" },
                    subscriber.behind_at_end,
                    subscriber.delivery
                ),
            ),
        ];
        let errors = questions.last_error.iter().chain(&subscriber.error);
        lines.extend(errors.map(|error| ("refused", error.clone())));
        lines
    }
}
