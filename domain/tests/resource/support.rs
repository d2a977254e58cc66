//! Short ways to say what happened and what is asked.

use converge_domain::resource::*;
use converge_domain::{ClaimId, Generation, PassId, ResourceId, ResourceRef, SessionId, Timestamp};
use cqrs_es::Aggregate;
use cqrs_es::event_sink::EventSink;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

pub const NOW: Timestamp = Timestamp(1_000_000);

pub fn id(n: u128) -> ResourceId {
    ResourceId(Uuid::from_u128(n))
}

pub fn claim_id(n: u128) -> ClaimId {
    ClaimId(Uuid::from_u128(n))
}

pub fn pass_id(n: u128) -> PassId {
    PassId(Uuid::from_u128(n))
}

/// A resource that is driven by real commands, so that its history is one that can happen.
#[derive(Clone, Default)]
pub struct Story {
    pub state: ResourceState,
    pub events: Vec<ResourceEvent>,
    /// What the schema says at the next look at the surroundings.
    pub rejection: Option<String>,
    claims: u128,
}

impl Story {
    /// Runs a command that must be accepted; its events.
    pub fn when(&mut self, command: ResourceCommand) -> Vec<ResourceEvent> {
        self.attempt(command).expect("the command is accepted")
    }

    /// Runs a command.
    pub fn attempt(&mut self, command: ResourceCommand) -> Result<Vec<ResourceEvent>, ResourceError> {
        let mut next = self.state.clone();
        let events = futures_now(async {
            let sink = EventSink::default();
            next.handle(command, &(), &sink).await?;
            Ok::<_, ResourceError>(sink.collect().await)
        })?;
        // The state that decided is the state a replay gives.
        let mut replayed = self.state.clone();
        for event in &events {
            let text = serde_json::to_string(event).expect("an event is JSON");
            replayed.apply(serde_json::from_str(&text).expect("and reads back"));
        }
        assert_eq!(replayed, next, "a replay of {events:?} gives another state");
        self.state = next;
        self.events.extend(events.clone());
        Ok(events)
    }

    pub fn names(events: &[ResourceEvent]) -> Vec<&'static str> {
        events.iter().map(ResourceEvent::name).collect()
    }

    pub fn phase(&self) -> Phase {
        self.state.phase()
    }

    /// Claims what is due.
    pub fn claims(&mut self) -> Claim {
        self.claims += 1;
        self.when(claim(self.claims));
        self.state.claim.clone().expect("a claim is live")
    }

    /// Claims and succeeds with a status.
    pub fn works(&mut self, status: Value) -> Vec<ResourceEvent> {
        let claim = self.claims();
        self.when(outcome(&claim, succeeded(status)))
    }

    pub fn fails(&mut self, message: &str, terminal: bool) -> Vec<ResourceEvent> {
        let claim = self.claims();
        self.when(outcome(&claim, failed(message, terminal)))
    }

    /// Evaluates against facts read now.
    pub fn sees(
        &mut self,
        upstreams: Vec<UpstreamFact>,
        children: Option<ChildrenFact>,
    ) -> Vec<ResourceEvent> {
        let rejection = self.rejection.take();
        let expected = converge_domain::Sequence(self.state.sequence);
        self.when(ResourceCommand::Evaluate(Box::new(Evaluate {
            expected,
            upstreams,
            children,
            rejection,
            held_by: None,
            at: NOW,
        })))
    }

    /// Evaluates a deletion.
    pub fn held_by(&mut self, dependents: bool, children: bool) -> Vec<ResourceEvent> {
        let expected = converge_domain::Sequence(self.state.sequence);
        self.when(ResourceCommand::Evaluate(Box::new(Evaluate {
            expected,
            upstreams: vec![],
            children: None,
            rejection: None,
            held_by: Some(HeldBy { dependents, children }),
            at: NOW,
        })))
    }

    /// Composes one pass whose children are then read as `children`.
    pub fn composes(&mut self, children: ChildrenFact) {
        let claim = self.claims();
        assert_eq!(claim.reaction, Reaction::Compose);
        self.when(outcome(&claim, composition(7)));
        self.when(complete_pass(2));
        self.sees(vec![], Some(children));
    }
}

fn futures_now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

pub fn leaf() -> Shape {
    Shape { works: true, finalizers: vec!["acme/leaf".into()], ..Shape::default() }
}

pub fn composite() -> Shape {
    Shape { composes: true, rolls_up: true, finalizers: vec!["acme/root".into()], ..Shape::default() }
}

pub fn declared(shape: Shape) -> Story {
    let mut story = Story::default();
    story.when(ResourceCommand::Declare(Box::new(declare(shape, json!({"size": 1})))));
    story
}

pub fn declare(shape: Shape, spec: Value) -> Declare {
    Declare {
        id: id(1),
        reference: ResourceRef::new("vpc", "a"),
        kind_version: 1,
        spec: Arc::new(spec),
        labels: BTreeMap::new(),
        provider_config_ref: None,
        deletion_protection: None,
        edges: vec![],
        shape: Arc::new(shape),
        behind: None,
        composer: None,
        expected_revision: None,
        at: NOW,
    }
}

/// A leaf with an edge to resource 2 over which `/id` flows into `/account_id`.
pub fn dependent() -> Declare {
    Declare {
        edges: vec![Edge {
            upstream: id(2),
            upstream_ref: ResourceRef::new("account", "b"),
            values: vec![FieldFlow { dependent_field: "/account_id".into(), source_field: "/id".into() }],
            conflicted: false,
            unbound: false,
        }],
        ..declare(leaf(), json!({"size": 1}))
    }
}

pub fn upstream(sequence: u64, ready: bool, standing: Standing, status: Value) -> UpstreamFact {
    UpstreamFact {
        id: id(2),
        sequence: converge_domain::Sequence(sequence),
        ready,
        standing,
        status: Arc::new(status),
    }
}

pub fn ready_upstream(sequence: u64, status: Value) -> UpstreamFact {
    upstream(sequence, true, Standing::AllReady, status)
}

pub fn claim(n: u128) -> ResourceCommand {
    claim_at(n, NOW)
}

pub fn claim_at(n: u128, at: Timestamp) -> ResourceCommand {
    ResourceCommand::Claim(Box::new(ClaimTask {
        claim_id: claim_id(n),
        session: SessionId(Uuid::nil()),
        worker: "w".into(),
        deadline_secs: 0,
        at,
    }))
}

pub fn outcome(claim: &Claim, outcome: Outcome) -> ResourceCommand {
    outcome_with(claim, outcome, 3)
}

pub fn outcome_with(claim: &Claim, outcome: Outcome, max_transient_attempts: u32) -> ResourceCommand {
    ResourceCommand::RecordOutcome(Box::new(RecordOutcome {
        epoch: claim.epoch,
        claim_id: claim.claim_id,
        outcome,
        retry: RetryPolicy { max_transient_attempts, jitter: 0.5 },
        at: NOW,
    }))
}

pub fn succeeded(status: Value) -> Outcome {
    Outcome::Succeeded(Succeeded { status: Some(Arc::new(status)), ..Succeeded::default() })
}

pub fn failed(message: &str, terminal: bool) -> Outcome {
    Outcome::Failed { message: message.into(), terminal, status: None }
}

pub fn composition(n: u128) -> Outcome {
    Outcome::Composition {
        pass_id: pass_id(n),
        digest: "d".into(),
        children: 2,
        edges: 0,
        succeeded: Succeeded::default(),
    }
}

/// The end of pass 7, which made that many children.
pub fn complete_pass(created: u64) -> ResourceCommand {
    ResourceCommand::CompletePass(Box::new(CompletePass {
        pass_id: pass_id(7),
        created,
        changed: 0,
        dropped: 0,
        conflicts: vec![],
        held: None,
        sample: None,
        configs: vec![],
        at: NOW,
    }))
}

pub fn settled(digest: &str) -> ChildrenFact {
    ChildrenFact { open: None, impaired: None, digest: Some(digest.into()), recompose: false }
}

pub fn with_open(child: ResourceId) -> ChildrenFact {
    ChildrenFact { open: Some(child), impaired: None, digest: None, recompose: false }
}

pub fn with_impaired(child: ResourceId, digest: &str) -> ChildrenFact {
    ChildrenFact { open: None, impaired: Some(child), digest: Some(digest.into()), recompose: false }
}

pub fn generation(n: u64) -> Generation {
    Generation(n)
}
