//! Folding from a basis and folding everything give the same phases.

use super::Basis;
use converge_domain::resource::{
    AttemptFailed, Composed, CompositionAccepted, Configured, Created, Edge, FieldFlow, Gate, Input,
    Observed, Pass, Reaction, ResourceEvent, ResourceState, ResyncRequested, Shape, Standing, SubtreeChanged,
    Unresolved, UpstreamsEvaluated, Worked,
};
use converge_domain::{ClaimId, Epoch, Generation, PassId, ResourceId, ResourceRef, Round, Timestamp};
use cqrs_es::Aggregate;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// A small linear congruential generator: the same histories on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

const AT: Timestamp = Timestamp(1);
const EPOCH: Epoch = Epoch(1);

fn created(dice: &mut Dice) -> ResourceEvent {
    let shape = Shape {
        works: dice.coin(),
        composes: dice.coin(),
        rolls_up: dice.coin(),
        observes: dice.coin(),
        finalizers: vec!["f".to_owned()],
    };
    ResourceEvent::Created(Created {
        id: ResourceId(Uuid::from_u128(1)),
        kind: "vpc".to_owned(),
        kind_version: 1,
        name: "a".to_owned(),
        ancestors: vec![ResourceId(Uuid::from_u128(2))],
        spec: Arc::new(serde_json::json!({"a": 1})),
        labels: BTreeMap::from([("l".to_owned(), "1".to_owned())]),
        provider_config_ref: None,
        deletion_protection: false,
        edges: edges(dice),
        shape: Arc::new(shape),
        pass_id: None,
        behind: dice.coin().then(|| ResourceId(Uuid::from_u128(9))),
        at: AT,
    })
}

fn edges(dice: &mut Dice) -> Vec<Edge> {
    let edge = |n: u64| Edge {
        upstream: ResourceId(Uuid::from_u128(u128::from(10 + n))),
        upstream_ref: ResourceRef::new("up", "stream"),
        values: vec![FieldFlow { dependent_field: format!("/f{n}"), source_field: "/s".to_owned() }],
        conflicted: false,
        unbound: false,
    };
    (0..dice.below(3)).map(edge).collect()
}

fn inputs(dice: &mut Dice) -> Vec<Input> {
    let input = |n: u64| Input {
        field: format!("/f{n}"),
        source: ResourceId(Uuid::from_u128(u128::from(10 + n))),
        source_field: "/s".to_owned(),
        source_sequence: 5,
        value: Arc::new(serde_json::json!("value")),
    };
    (0..dice.below(3)).map(input).collect()
}

fn unresolved(dice: &mut Dice) -> Vec<Unresolved> {
    let flow = |n: u64| Unresolved {
        field: format!("/f{n}"),
        upstream: ResourceRef::new("up", "stream"),
        source_field: "/s".to_owned(),
        reason: "missing".to_owned(),
    };
    (0..dice.below(4).saturating_sub(2)).map(flow).collect()
}

/// Any event but the last, possible in its place or not: the law holds for all.
fn event(dice: &mut Dice, state: &ResourceState) -> ResourceEvent {
    let generation = Generation(state.generation.0 + dice.below(4) / 3);
    let (round, digest) = (Round(state.compose_round.0), format!("digest{}", dice.below(2)));
    let standing = [Standing::AllReady, Standing::Impaired, Standing::Open][dice.below(3) as usize];
    let pass_id = PassId(Uuid::from_u128(3));
    match dice.below(24) {
        0..=2 => ResourceEvent::Worked(Worked {
            epoch: EPOCH,
            generation: state.generation,
            round: state.round,
            status: Some(Arc::new(serde_json::json!({"n": dice.below(2)}))),
            conditions: None,
            healthy: dice.below(4) > 0,
            changed: None,
            at: AT,
        }),
        3 => ResourceEvent::Configured(Configured {
            generation,
            kind_version: None,
            shape: None,
            spec: Some(Arc::new(serde_json::json!({"a": 2}))),
            labels: dice.coin().then(BTreeMap::new),
            provider_config_ref: None,
            deletion_protection: None,
            edges: if dice.coin() { Some(edges(dice)) } else { None },
            released: Vec::new(),
            pass_id: None,
            at: AT,
        }),
        4 | 5 => ResourceEvent::UpstreamsEvaluated(UpstreamsEvaluated {
            gate: Gate::Open,
            generation,
            inputs: inputs(dice),
            removed: if dice.coin() { vec!["/f0".to_owned()] } else { Vec::new() },
            unresolved: unresolved(dice),
            held_by: Vec::new(),
            at: AT,
        }),
        6 => ResourceEvent::InputsRejected { generation, message: "no".to_owned(), at: AT },
        7 => ResourceEvent::AttemptFailed(AttemptFailed {
            epoch: EPOCH,
            reaction: [
                Reaction::Work,
                Reaction::Compose,
                Reaction::Rollup,
                Reaction::Teardown,
                Reaction::Observe,
            ][dice.below(5) as usize],
            generation,
            message: "no".to_owned(),
            terminal: dice.coin(),
            attempt: 1,
            retry_at: None,
            status: None,
            at: AT,
        }),
        8 | 9 => ResourceEvent::CompositionAccepted(CompositionAccepted {
            epoch: EPOCH,
            pass: Pass {
                pass_id,
                claim_id: ClaimId(Uuid::nil()),
                generation: state.generation,
                compose_round: round,
                digest,
                children: 1,
                edges: 0,
            },
            status: None,
            conditions: None,
            at: AT,
        }),
        10 | 11 => ResourceEvent::Composed(Composed {
            pass_id,
            created: 1,
            changed: 0,
            dropped: 0,
            conflicts: Vec::new(),
            held: None,
            sample: None,
            configs: Vec::new(),
            at: AT,
        }),
        12 | 13 => ResourceEvent::SubtreeChanged(SubtreeChanged {
            subtree: standing,
            culprit: None,
            digest: dice.coin().then_some(digest),
            at: AT,
        }),
        14 | 15 => ResourceEvent::RolledUp { epoch: EPOCH, digest, status: None, conditions: None, at: AT },
        16 => ResourceEvent::RecomposeRequested { reason: String::new(), digest: None },
        17 if dice.coin() => ResourceEvent::Dropped {
            pass_id,
            former_dependents: Vec::new(),
            kept: dice.coin(),
            kept_until: None,
            at: AT,
        },
        17 => ResourceEvent::Readopted { pass_id, at: AT },
        18 => ResourceEvent::ResyncRequested(ResyncRequested {
            number: state.resync + 1,
            retry: dice.coin(),
            recompose: dice.coin(),
            reason: String::new(),
            at: AT,
        }),
        19 => ResourceEvent::Observed(Observed {
            epoch: EPOCH,
            number: state.resync,
            status: None,
            conditions: None,
            healthy: dice.coin(),
            changed: None,
            at: AT,
        }),
        20 if state.quarantine.is_some() => ResourceEvent::Released { reason: String::new(), at: AT },
        20 => ResourceEvent::Quarantined { reason: String::new(), at: AT },
        21 => ResourceEvent::GraceEnded { at: AT },
        22 => ResourceEvent::NameTaken { at: AT },
        _ if dice.below(4) == 0 => ResourceEvent::DeletionRequested { at: AT },
        _ => ResourceEvent::Propagated {},
    }
}

#[test]
fn from_a_basis_the_next_phases_follow_as_from_the_whole_state() {
    let mut dice = Dice(0x5EED);
    let mut seen = std::collections::BTreeSet::new();
    for history in 0..3000 {
        let mut whole = ResourceState::default();
        whole.apply(created(&mut dice));
        for step in 0..20 {
            let text = serde_json::to_string(&Basis::of(&whole)).unwrap();
            let basis: Basis = serde_json::from_str(&text).unwrap();
            let mut thin = basis.state(whole.id().clone());
            assert_eq!(thin.phase(), whole.phase(), "history {history}, step {step}: {text}");
            let event = event(&mut dice, &whole);
            thin.apply(event.clone());
            whole.apply(event.clone());
            assert_eq!(thin.phase(), whole.phase(), "history {history}, step {step}: {event:?} on {text}");
            assert_eq!(
                Basis::of(&thin),
                Basis::of(&whole),
                "history {history}, step {step}: {event:?} on {text}"
            );
            seen.insert(whole.phase());
        }
    }
    // The histories go where phases go.
    assert_eq!(seen.len(), 7, "{seen:?}");
}

#[test]
fn a_leaf_that_is_ready_is_remembered_in_a_few_bytes() {
    let ready = Basis {
        works: true,
        generation: Generation(1),
        worked: Some((Generation(1), Round(0))),
        synced: Generation(1),
        ..Basis::default()
    };
    let text = serde_json::to_string(&ready).unwrap();
    assert_eq!(text, r#"{"works":true,"generation":1,"worked":[1,0],"synced":1}"#);
}
