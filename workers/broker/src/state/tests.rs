//! The rules of the memory, on a clock that stands still unless told.

use super::*;
use crate::state::worker::OfferTarget;
use converge_domain::resource::Reaction;
use converge_domain::{ClaimId, Epoch, Generation, ResourceId};
use converge_engine::dispatch::{DispatchError, Task, TaskResult};
use std::time::Duration;
use tokio::sync::mpsc;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(15);

struct Rig {
    state: State,
    start: Instant,
}

impl Rig {
    fn new(kinds: &[&str]) -> Self {
        let catalog = kinds.iter().map(|kind| (kind_ref(kind), (*kind).to_owned())).collect();
        Self { state: State::new(BrokerConfig::default(), catalog), start: Instant::now() }
    }

    fn at(&self, secs: f64) -> Instant {
        self.start + Duration::from_secs_f64(secs)
    }

    /// A worker that serves every kind of the catalog.
    fn worker(&mut self, slots: usize) -> (WorkerId, mpsc::Receiver<Order>) {
        let offers = self.state.catalog.iter().map(|(kind, _)| offer(&kind.kind, true)).collect();
        let (orders, queue) = mpsc::channel(1000);
        let id = self.state.join(format!("worker of {slots}"), slots, offers, orders, Closer::default());
        self.state.joined(id);
        (id, queue)
    }

    /// What would be claimed now: (kind, worker, limit), sorted.
    fn plan(&mut self) -> Vec<ClaimJob> {
        let mut jobs = self.state.plan_claims();
        jobs.sort_by(|a, b| (&a.kind, a.worker).cmp(&(&b.kind, b.worker)));
        jobs
    }

    /// The engine gives `count` tasks for a job.
    fn give(&mut self, job: &ClaimJob, count: usize) -> Vec<Fence> {
        let tasks: Vec<Task> = (0..count).map(|_| task(&job.kind.kind)).collect();
        let fences = tasks.iter().map(|task| task.fence).collect();
        self.state.claimed(job, Ok(tasks), self.start);
        fences
    }

    /// One task of `kind`, running on the only worker.
    fn run_one(&mut self, kind: &str, deadline: Option<Duration>) -> Fence {
        self.state.wake(&kind_ref(kind));
        let job = self.plan().into_iter().find(|job| job.kind.kind == kind).unwrap();
        let mut task = task(kind);
        task.deadline_ms = deadline.map(|deadline| u64::try_from(deadline.as_millis()).unwrap());
        let fence = task.fence;
        self.state.claimed(&job, Ok(vec![task]), self.start);
        self.state.take_effects();
        fence
    }

    fn released(&mut self) -> Vec<(Fence, String)> {
        let effects = self.state.take_effects().into_iter();
        effects
            .filter_map(|effect| match effect {
                Effect::Release { fence, reason } => Some((fence, reason)),
                _ => None,
            })
            .collect()
    }

    fn failures(&mut self) -> Vec<String> {
        let effects = self.state.take_effects().into_iter();
        effects
            .filter_map(|effect| match effect {
                Effect::Record(TaskOutcome { result: TaskResult::Failure { message, .. }, .. }) => {
                    Some(message)
                }
                _ => None,
            })
            .collect()
    }
}

fn kind_ref(kind: &str) -> KindRef {
    KindRef::new(kind, 1)
}

fn offer(kind: &str, ready: bool) -> Offer {
    Offer { target: OfferTarget::Kind { kind: kind.to_owned(), versions: vec![] }, ready }
}

fn task(kind: &str) -> Task {
    Task {
        fence: Fence { id: ResourceId(Uuid::new_v4()), epoch: Epoch(1), claim_id: ClaimId(Uuid::new_v4()) },
        kind: kind_ref(kind),
        provider: kind.to_owned(),
        name: "n".to_owned(),
        reaction: Reaction::Work,
        observes: false,
        reaction_name: "work".to_owned(),
        finalizer: None,
        generation: Generation(1),
        attempt: 1,
        idempotency_key: "k".to_owned(),
        deadline_ms: None,
        labels: std::collections::BTreeMap::new(),
        spec: bytes::Bytes::new(),
        status: None,
        config_override: None,
        default_config: None,
        summary: None,
        emits: vec![],
        paged_input: None,
    }
}

fn limits(jobs: &[ClaimJob]) -> Vec<(&str, u64, usize)> {
    jobs.iter().map(|job| (job.kind.kind.as_str(), job.worker.0, job.limit)).collect()
}

fn cancels(queue: &mut mpsc::Receiver<Order>) -> Vec<String> {
    let orders = std::iter::from_fn(|| queue.try_recv().ok());
    orders
        .filter_map(|order| match order {
            Order::Cancel { reason, .. } => Some(reason),
            _ => None,
        })
        .collect()
}

#[test]
fn hungry_kinds_share_a_workers_free_slots_evenly() {
    let mut rig = Rig::new(&["a", "b", "c"]);
    let _worker = rig.worker(9);
    let jobs = rig.plan();
    assert_eq!(limits(&jobs), [("a", 1, 3), ("b", 1, 3), ("c", 1, 3)]);
    assert!(rig.plan().is_empty(), "every slot is reserved");
}

#[test]
fn what_a_kind_leaves_goes_to_the_others_but_for_the_slots_kept_for_idle_ones() {
    let mut rig = Rig::new(&["a", "b", "c"]);
    let _worker = rig.worker(9);
    for job in rig.plan() {
        let count = if job.kind.kind == "a" { job.limit } else { 0 };
        rig.give(&job, count);
    }
    // 6 are free; b and c have none in use and keep one each.
    assert_eq!(limits(&rig.plan()), [("a", 1, 4)]);
}

#[test]
fn with_fewer_slots_than_twice_the_kinds_nothing_is_kept_back() {
    let mut rig = Rig::new(&["a", "b", "c"]);
    let _worker = rig.worker(5);
    for job in rig.plan() {
        rig.give(&job, 0);
    }
    rig.state.wake(&kind_ref("a"));
    assert_eq!(limits(&rig.plan()), [("a", 1, 5)]);
}

#[test]
fn a_freed_slot_goes_to_the_kind_that_fills_the_fewest() {
    let mut rig = Rig::new(&["cool", "hot"]);
    let (worker, _queue) = rig.worker(3);
    let mut hot = Vec::new();
    for job in rig.plan() {
        let count = if job.kind.kind == "hot" { job.limit } else { 0 };
        hot.extend(rig.give(&job, count));
    }
    for job in rig.plan() {
        hot.extend(rig.give(&job, job.limit));
    }
    assert_eq!(hot.len(), 3, "the hot kind fills the worker");
    rig.state.wake(&kind_ref("cool"));
    assert!(rig.plan().is_empty());
    rig.state.take(worker, hot[0], kind_ref("hot"), rig.start);
    assert_eq!(limits(&rig.plan()), [("cool", 1, 1)]);
}

#[test]
fn one_kind_on_several_workers_goes_where_the_most_slots_are_free() {
    let mut rig = Rig::new(&["a"]);
    let (_small, _big) = (rig.worker(2), rig.worker(5));
    let jobs = rig.plan();
    assert_eq!(limits(&jobs), [("a", 1, 2), ("a", 2, 5)]);
    for job in &jobs {
        rig.give(job, 0);
    }
    // One slot is taken from the bigger one first, until they are level.
    rig.state.config.claim_batch_max = 3;
    rig.state.wake(&kind_ref("a"));
    assert_eq!(limits(&rig.plan()), [("a", 1, 2), ("a", 2, 3)]);
}

#[test]
fn a_short_answer_ends_the_asking_unless_the_kind_woke_meanwhile() {
    let mut rig = Rig::new(&["a"]);
    let _worker = rig.worker(4);
    let jobs = rig.plan();
    rig.give(&jobs[0], 1);
    assert!(rig.plan().is_empty());

    rig.state.wake(&kind_ref("a"));
    let jobs = rig.plan();
    rig.state.wake(&kind_ref("a"));
    rig.give(&jobs[0], 0);
    assert_eq!(limits(&rig.plan()), [("a", 1, 3)]);
}

#[test]
fn a_failed_claim_gives_its_slots_back_and_rests_its_kind() {
    let mut rig = Rig::new(&["a"]);
    let _worker = rig.worker(4);
    let jobs = rig.plan();
    let rest = rig.state.claimed(&jobs[0], Err(DispatchError("down".to_owned())), rig.start);
    assert!(rest.is_some());
    rig.state.wake(&kind_ref("a"));
    assert!(rig.plan().is_empty(), "resting");
    rig.state.unpark(&kind_ref("a"));
    assert_eq!(limits(&rig.plan()), [("a", 1, 4)]);
}

#[test]
fn tasks_claimed_for_a_worker_that_left_are_released() {
    let mut rig = Rig::new(&["a"]);
    let (worker, _queue) = rig.worker(2);
    let jobs = rig.plan();
    rig.state.lost(worker, rig.start);
    let fences = rig.give(&jobs[0], 2);
    let released: Vec<_> = rig.released().into_iter().map(|(fence, _)| fence).collect();
    assert_eq!(released, fences);
}

#[test]
fn an_unattested_task_expires_after_exactly_one_lease_and_frees_its_slot() {
    let mut rig = Rig::new(&["a"]);
    let (worker, mut queue) = rig.worker(1);
    let fence = rig.run_one("a", None);
    rig.state.attest(worker, &[fence], rig.at(10.0));
    rig.state.expire(rig.at(24.999));
    assert!(rig.released().is_empty());
    rig.state.expire(rig.at(25.0));
    assert_eq!(rig.released(), [(fence, "the worker did not attest its progress".to_owned())]);
    assert_eq!(cancels(&mut queue), ["claim lost"]);
    rig.state.wake(&kind_ref("a"));
    assert_eq!(limits(&rig.plan()), [("a", 1, 1)]);
    // A zombie that attests it later is told again.
    rig.state.attest(worker, &[fence], rig.at(26.0));
    assert_eq!(cancels(&mut queue), ["claim lost"]);
}

#[test]
fn a_lost_workers_tasks_wait_one_lease_and_an_adopted_one_starts_a_new_lease() {
    let mut rig = Rig::new(&["a"]);
    let (worker, _queue) = rig.worker(2);
    let fence = rig.run_one("a", None);
    rig.state.lost(worker, rig.at(5.0));
    rig.state.expire(rig.at(19.0));
    assert!(rig.released().is_empty());
    let (back, _queue) = rig.worker(2);
    rig.state.adopt(back, fence, kind_ref("a"), None, rig.at(19.5));
    rig.state.expire(rig.at(34.0));
    assert!(rig.released().is_empty());
    rig.state.lost(back, rig.at(34.0));
    rig.state.expire(rig.at(49.0));
    assert_eq!(rig.released(), [(fence, "the worker did not come back".to_owned())]);
}

#[test]
fn a_task_that_a_new_connection_resumes_leaves_the_slot_of_the_old_one() {
    let mut rig = Rig::new(&["a"]);
    let (_old, _old_queue) = rig.worker(1);
    let fence = rig.run_one("a", None);
    let (new, _new_queue) = rig.worker(1);
    rig.state.adopt(new, fence, kind_ref("a"), None, rig.start);
    assert_eq!(limits(&rig.plan()), [("a", 1, 1)]);
    assert!(rig.state.is_held_by(new, &fence));
}

#[test]
fn a_missed_deadline_is_recorded_once_whatever_comes_later() {
    let mut rig = Rig::new(&["a"]);
    let (worker, mut queue) = rig.worker(1);
    let fence = rig.run_one("a", Some(Duration::from_secs(5)));
    let next = rig.state.expire(rig.at(1.0));
    assert!(next <= rig.at(5.0));
    rig.state.expire(rig.at(5.0));
    assert_eq!(rig.failures(), ["task deadline of 5 s exceeded"]);
    assert_eq!(cancels(&mut queue), ["deadline"]);
    rig.state.expire(rig.at(60.0));
    assert!(rig.failures().is_empty());
    let late = rig.state.take(worker, fence, kind_ref("a"), rig.at(60.0));
    assert_eq!(late, Taken::Already);
}

#[test]
fn an_outcome_in_time_ends_lease_and_deadline_even_while_its_recording_takes_long() {
    let mut rig = Rig::new(&["a"]);
    let (worker, mut queue) = rig.worker(1);
    let fence = rig.run_one("a", Some(Duration::from_secs(5)));
    assert_eq!(rig.state.take(worker, fence, kind_ref("a"), rig.at(4.0)), Taken::Record(kind_ref("a")));
    rig.state.take_effects();
    rig.state.expire(rig.at(600.0));
    assert!(rig.state.take_effects().is_empty() && cancels(&mut queue).is_empty());
    rig.state.recorded(fence, true);
    let received = std::iter::from_fn(|| queue.try_recv().ok());
    assert_eq!(received.filter(|order| matches!(order, Order::Received { accepted: true, .. })).count(), 1);
}

#[test]
fn an_answer_goes_to_the_connection_that_delivered_last() {
    let mut rig = Rig::new(&["a"]);
    let (old, mut old_queue) = rig.worker(1);
    let fence = rig.run_one("a", None);
    rig.state.take(old, fence, kind_ref("a"), rig.start);
    rig.state.lost(old, rig.start);
    let (new, mut new_queue) = rig.worker(1);
    rig.state.adopt(new, fence, kind_ref("a"), None, rig.start);
    assert_eq!(rig.state.take(new, fence, kind_ref("a"), rig.start), Taken::Already);
    rig.state.recorded(fence, true);
    let heard = |queue: &mut mpsc::Receiver<Order>| {
        std::iter::from_fn(|| queue.try_recv().ok()).any(|order| matches!(order, Order::Received { .. }))
    };
    assert!(!heard(&mut old_queue) && heard(&mut new_queue));
}

#[test]
fn a_broker_that_was_stopped_itself_blames_nobody() {
    let mut rig = Rig::new(&["a"]);
    let _worker = rig.worker(1);
    rig.run_one("a", None);
    rig.state.forgive_silence(rig.at(3600.0));
    rig.state.expire(rig.at(3600.0));
    assert!(rig.released().is_empty());
    rig.state.expire(rig.at(3600.0) + LEASE);
    assert_eq!(rig.released().len(), 1);
}

#[test]
fn a_provider_offer_serves_the_kinds_that_name_it_and_a_kind_offer_only_those_that_name_no_other() {
    let catalog = vec![
        (kind_ref("bucket"), "stdio".to_owned()),
        (kind_ref("queue"), "stdio".to_owned()),
        (kind_ref("vpc"), "vpc".to_owned()),
        (KindRef::new("vpc", 2), "vpc".to_owned()),
    ];
    let mut state = State::new(BrokerConfig::default(), catalog);
    let served = |state: &mut State, target: OfferTarget| {
        let (orders, _queue) = mpsc::channel(100);
        let offers = vec![Offer { target, ready: true }];
        let id = state.join("w".to_owned(), 1, offers, orders, Closer::default());
        let served: Vec<String> = state.workers[&id].ready().map(ToString::to_string).collect();
        served
    };
    let kind = |kind: &str, versions| OfferTarget::Kind { kind: kind.to_owned(), versions };
    assert_eq!(served(&mut state, OfferTarget::Provider("stdio".to_owned())), ["bucket/v1", "queue/v1"]);
    assert_eq!(served(&mut state, kind("vpc", vec![])), ["vpc/v1", "vpc/v2"]);
    assert_eq!(served(&mut state, kind("vpc", vec![2])), ["vpc/v2"]);
    assert!(served(&mut state, kind("bucket", vec![])).is_empty());
}

#[test]
fn a_worker_that_does_not_read_is_disconnected() {
    let mut rig = Rig::new(&["a"]);
    let closer = Closer::default();
    let (orders, _queue) = mpsc::channel(2);
    let id = rig.state.join("w".to_owned(), 4, vec![offer("a", true)], orders, closer.clone());
    for _ in 0..3 {
        rig.state.cancel_at(id, task("a").fence, "x");
    }
    assert_eq!(closer.status().map(|status| status.code()), Some(tonic::Code::ResourceExhausted));
}

#[test]
fn only_workers_that_take_work_are_reported() {
    let mut rig = Rig::new(&["a"]);
    let (worker, _queue) = rig.worker(1);
    assert_eq!(rig.state.served_if_changed(), Some(vec![(kind_ref("a"), 1)]));
    assert_eq!(rig.state.served_if_changed(), None);
    rig.state.rematch(worker, Some(vec![offer("a", false)]));
    assert_eq!(rig.state.served_if_changed(), Some(vec![]));
    rig.state.rematch(worker, Some(vec![offer("a", true)]));
    rig.state.drain(worker, &[]);
    assert_eq!(rig.state.served_if_changed(), None);
}
