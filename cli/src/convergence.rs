//! Waiting for resources: for the phase that was wished for, or for a failure that ends the wish.
//!
//! Level-triggered: every look reads the present state, so a missed or repeated notice can neither hang a
//! wait nor end it wrongly. A subscription only says *when* to look; where there is none a short pause
//! does. A server that goes away for a while is waited for as well, until time is up.

use crate::client::model::{
    PositionAnswer, Resource, ResourceAnswer, ResourceChange, ResourcesAnswer, SummaryAnswer,
};
use crate::client::{Client, ClientError, Follow, Followed, Operation, operations};
use crate::exit::{Exit, Failure, Outcome};
use crate::progress::{PhaseCounts, Progress};
use converge_domain::ResourceRef;
use futures::{StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// Looks come no closer than this without a notice.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// Questions in flight at once.
const PARALLEL: usize = 8;
/// The most roots whose whole subtree is counted for progress; of more, only themselves.
const SUMMARIES_MAX: usize = 8;
/// How many culprits are named.
const NAMED_MAX: usize = 10;
/// How many failures are looked at below one root.
const FAILURES_MAX: usize = 1_000;
/// How long the last look may take beyond the deadline.
const LAST_LOOK: Duration = Duration::from_secs(5);
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// A resource that somebody waits for.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub id: String,
    pub reference: ResourceRef,
    /// It was made by this very command, so no failure below it can be an old one.
    pub fresh: bool,
}

/// Until when, and how to ask meanwhile.
#[derive(Clone, Debug)]
pub struct Patience {
    client: Client,
    deadline: Instant,
}

impl Patience {
    /// Patience that ends `timeout` from now.
    pub fn new(client: &Client, timeout: Duration) -> Self {
        // A timeout beyond the clock's range is for ever; a century serves as well.
        let century = Duration::from_secs(100 * 365 * 86_400);
        Self { client: client.clone(), deadline: Instant::now() + timeout.min(century) }
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Asks until there is an answer. Only for questions that change nothing.
    ///
    /// # Errors
    /// The refusal, if it is final; [`Exit::NotConverged`] when time ran out before an answer.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        operation: Operation,
        variables: Value,
    ) -> Result<T, Failure> {
        let mut backoff = RETRY_MIN;
        loop {
            let asked = self.client.ask(operation, &variables);
            // The last look begins when time is up, and must still be able to say what it saw.
            let until = self.deadline.max(Instant::now() + LAST_LOOK);
            let error = match tokio::time::timeout_at(until, asked).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if error.is_transient() => error,
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {
                    let unanswered = "the server did not answer in time";
                    return Err(Failure::new(Exit::NotConverged, unanswered));
                }
            };
            tracing::debug!(%error, operation = operation.name, "asking again");
            if Instant::now() + backoff >= self.deadline {
                return Err(Failure::new(Exit::NotConverged, error));
            }
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(RETRY_MAX);
        }
    }
}

/// Says when it is worth looking again.
pub struct Waker {
    follow: Option<Follow<ResourceChange>>,
    /// No look may read an earlier state than this.
    position: u64,
    name: String,
    pause: Duration,
}

impl Waker {
    /// Wakes at each change of `target` after `position`, and now and then without one.
    pub fn on(client: &Client, target: &ResourceRef, position: u64) -> Self {
        let mut variables = Map::new();
        let filter = json!({"kind": target.kind, "namePrefix": target.name});
        variables.insert("filter".to_owned(), filter);
        let follow = client.follow(operations::FOLLOW_RESOURCES, variables, position);
        Self { follow: Some(follow), position, name: target.name.clone(), pause: PAUSE_MIN }
    }

    /// Wakes now and then.
    pub fn paced(position: u64) -> Self {
        Self { follow: None, position, name: String::new(), pause: PAUSE_MIN }
    }

    /// The position to read at or after.
    pub fn min_position(&self) -> String {
        self.position.to_string()
    }

    /// Tells how long the last look took: looking must never be most of what the server does.
    pub fn took(&mut self, cost: Duration) {
        self.pause = PAUSE_MIN.max(4 * cost);
    }

    /// Returns when it is time to look again, at the latest when `patience` is over.
    pub async fn wake(&mut self, patience: &Patience) {
        let until = (Instant::now() + self.pause).min(patience.deadline);
        let pause = tokio::time::sleep_until(until);
        tokio::pin!(pause);
        loop {
            let Some(follow) = &mut self.follow else { return pause.await };
            tokio::select! {
                () = &mut pause => return,
                followed = follow.next() => match followed {
                    Ok(Followed::Item(change)) if change.name == self.name => {
                        self.position = self.position.max(change.position);
                        return;
                    }
                    Ok(Followed::Item(_)) => {}
                    Ok(Followed::Interrupted { from, reason }) => {
                        tracing::debug!(from, reason, "following again");
                    }
                    // Without notices the pauses still carry the wait.
                    Err(error) => {
                        tracing::debug!(%error, "not following");
                        self.follow = None;
                    }
                },
            }
        }
    }
}

/// One resource by identity, as it is now; None when it is gone.
///
/// # Errors
/// See [`Patience::ask`].
pub async fn look(patience: &Patience, id: &str, min_position: &str) -> Result<Option<Resource>, Failure> {
    let variables = json!({"id": id, "minPosition": min_position});
    let answer = patience.ask::<ResourceAnswer>(operations::STATE_BY_ID, variables).await;
    match answer {
        Ok(answer) => Ok(answer.resource),
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Waits until every resource of `wanted` is Ready.
///
/// # Errors
/// [`Exit::Failed`] as soon as one of them, or something below it, has failed for good; [`Exit::NotConverged`]
/// when time is up, with what each waits for.
pub async fn all_ready(
    client: &Client,
    wanted: &[Wanted],
    position: u64,
    patience: &Patience,
    progress: &mut Progress,
) -> Outcome {
    let mut waker = match wanted {
        [one] => Waker::on(client, &one.reference, position),
        _ => Waker::paced(position),
    };
    let mut known = KnownFailures::default();
    let mut pending: Vec<&Wanted> = wanted.iter().collect();
    let mut first = true;
    while !pending.is_empty() {
        let started = Instant::now();
        let min_position = waker.min_position();
        let seen = states(patience, &pending, &min_position).await?;
        let mut unready = Vec::new();
        for (wanted, resource) in seen {
            match resource {
                None => {
                    let message = format!("{} was deleted meanwhile", wanted.reference);
                    return Err(Failure::new(Exit::Failed, message));
                }
                Some(resource) if resource.phase == "Failed" => {
                    return Err(Failure::new(Exit::Failed, failure_line(&resource)));
                }
                Some(resource) if resource.phase == "Ready" => {}
                Some(resource) => unready.push((wanted, resource)),
            }
        }
        known.check(patience, &unready, &min_position, first).await?;
        first = false;
        show(patience, wanted, unready.len(), progress).await?;
        pending = unready.iter().map(|(wanted, _)| *wanted).collect();
        if pending.is_empty() {
            break;
        }
        if patience.is_over() {
            return Err(out_of_time(&unready));
        }
        waker.took(started.elapsed());
        waker.wake(patience).await;
    }
    Ok(())
}

async fn states<'w>(
    patience: &Patience,
    pending: &[&'w Wanted],
    min_position: &str,
) -> Result<Vec<(&'w Wanted, Option<Resource>)>, Failure> {
    // Collected first: a closure that borrows and returns a future has no nameable type for `buffered`.
    let looks: Vec<_> = pending
        .iter()
        .map(|wanted| async move { Ok((*wanted, look(patience, &wanted.id, min_position).await?)) })
        .collect();
    stream::iter(looks).buffered(PARALLEL).try_collect().await
}

/// Failures below the wanted resources.
///
/// An edit may be on its way to mend what failed before it, so failures that are there at the first look at
/// a resource older than the command do not count by themselves. They count when that resource has settled
/// with them: it is Degraded then, in the very state that its last edit led to.
#[derive(Default)]
struct KnownFailures(HashSet<String>);

impl KnownFailures {
    async fn check(
        &mut self,
        patience: &Patience,
        unready: &[(&Wanted, Resource)],
        min_position: &str,
        first: bool,
    ) -> Outcome {
        let looks: Vec<_> = unready
            .iter()
            .map(|(wanted, resource)| async move {
                let filter = json!({"root": wanted.id, "phase": ["Failed"]});
                let variables = json!({"filter": filter, "first": FAILURES_MAX, "minPosition": min_position});
                let answer: ResourcesAnswer = patience.ask(operations::FAILED, variables).await?;
                Ok::<_, Failure>((*wanted, resource.phase == "Degraded", answer.resources.nodes))
            })
            .collect();
        let found: Vec<_> = stream::iter(looks).buffered(PARALLEL).try_collect().await?;
        for (wanted, settled, failed) in found {
            let excused = first && !wanted.fresh && !settled;
            let mut suspects = Vec::new();
            for resource in failed {
                if excused {
                    self.0.insert(resource.id);
                } else if settled || !self.0.contains(&resource.id) {
                    suspects.push(resource);
                }
            }
            let lines = confirmed(patience, &suspects, min_position).await?;
            if !lines.is_empty() {
                let more = suspects.len().saturating_sub(NAMED_MAX);
                let rest = if more > 0 { format!("\nand {more} more") } else { String::new() };
                return Err(Failure::new(Exit::Failed, lines.join("\n") + &rest));
            }
        }
        Ok(())
    }
}

/// The first few of `suspects` that have failed even by their own state: the list they come from lags behind
/// it, and must not end a wait for a failure that is over.
async fn confirmed(
    patience: &Patience,
    suspects: &[Resource],
    min_position: &str,
) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for suspect in suspects.iter().take(NAMED_MAX) {
        match look(patience, &suspect.id, min_position).await? {
            Some(resource) if resource.phase == "Failed" => lines.push(failure_line(&resource)),
            _ => {}
        }
    }
    Ok(lines)
}

async fn show(
    patience: &Patience,
    wanted: &[Wanted],
    unready: usize,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut counts = PhaseCounts::default();
    if wanted.len() <= SUMMARIES_MAX {
        for root in wanted {
            let answer: SummaryAnswer = patience.ask(operations::SUMMARY, json!({"root": root.id})).await?;
            for count in &answer.summary.counts {
                counts.add(&count.phase, count.count);
            }
        }
    } else {
        counts.add("Ready", (wanted.len() - unready) as u64);
        counts.add("Reconciling", unready as u64);
    }
    progress.update(&counts);
    Ok(())
}

/// `vpc/a failed: no route (attempt 3)`
pub fn failure_line(resource: &Resource) -> String {
    let subject = format!("{}/{}", resource.kind, resource.name);
    match &resource.last_failure {
        Some(failure) => format!("{subject} failed: {} (attempt {})", failure.message, failure.attempt),
        None if resource.why.is_empty() => format!("{subject} failed"),
        None => format!("{subject} failed: {}", resource.why),
    }
}

fn out_of_time(unready: &[(&Wanted, Resource)]) -> Failure {
    let mut lines = vec![format!("time is up; {} not Ready yet", unready.len())];
    lines.extend(unready.iter().take(NAMED_MAX).map(|(_, resource)| state_line(resource)));
    Failure::new(Exit::NotConverged, lines.join("\n"))
}

/// `vpc/a is Reconciling: waits for account/a`
pub fn state_line(resource: &Resource) -> String {
    let separator = if resource.why.is_empty() { "" } else { ": " };
    format!("{}/{} is {}{separator}{}", resource.kind, resource.name, resource.phase, resource.why)
}

/// The end of the log now: where a wait starts that must miss nothing.
///
/// # Errors
/// See [`ClientError`].
pub async fn position_now(client: &Client) -> Result<u64, ClientError> {
    Ok(client.ask::<PositionAnswer>(operations::POSITION, json!({})).await?.events.position)
}
