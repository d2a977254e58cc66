//! What must hold at every event of any log, whatever was killed while it was written.

use converge_domain::resource::{Phase, ResourceEvent, ResourceState};
use converge_domain::{AggregateId, AnyEvent, Position, ResourceId};
use converge_event_store::StoredEvent;
use cqrs_es::Aggregate;
use std::collections::{HashMap, HashSet};

/// The live resources as the walk along the log finds them, with their graph indexed both ways.
#[derive(Default)]
struct Walk {
    states: HashMap<AggregateId, ResourceState>,
    children: HashMap<ResourceId, HashSet<AggregateId>>,
    sequences: HashMap<AggregateId, u64>,
}

/// Checks every event:
///
/// * positions are contiguous from 1, and so are the sequences of each stream;
/// * `synced_gen <= generation`, and epochs rise with each claim;
/// * an outcome is accepted only under the live claim;
/// * no composite is Ready while a wanted child is not;
/// * no teardown opens while something depends on the resource or is owned by it.
///
/// # Panics
/// Where one of them does not hold.
pub fn check(events: &[StoredEvent]) {
    let mut walk = Walk::default();
    for (at, stored) in events.iter().enumerate() {
        assert_eq!(stored.position, Position(at as u64 + 1), "positions are contiguous");
        let sequence = walk.sequences.entry(stored.aggregate_id).or_default();
        *sequence += 1;
        assert_eq!(stored.sequence.0, *sequence, "streams are contiguous");
        if let AnyEvent::Resource(event) = &stored.event {
            walk.step(stored, event);
        }
    }
}

impl Walk {
    fn step(&mut self, stored: &StoredEvent, event: &ResourceEvent) {
        let id = stored.aggregate_id;
        self.claims(stored, event);
        if let ResourceEvent::TeardownOpened {} = event {
            self.nothing_leans_on(id, stored.position);
        }
        let state = self.states.entry(id).or_default();
        let was_unready = state.identity.is_some() && state.phase() != Phase::Ready;
        state.apply(event.clone());
        assert!(state.synced_gen <= state.generation, "at {}", stored.position);
        let owner = state.id().owner();
        if let (ResourceEvent::Created(_), Some(owner)) = (event, owner) {
            self.children.entry(owner).or_default().insert(id);
        }
        if state.deleted {
            self.states.remove(&id);
            if let Some(owner) = owner {
                self.children.entry(owner).or_default().remove(&id);
            }
            return;
        }
        let phase = self.states[&id].phase();
        if phase == Phase::Ready && was_unready {
            self.ready_children(id, stored.position);
        } else if phase != Phase::Ready
            && let Some(owner) = owner
        {
            self.ready_children(owner.into(), stored.position);
        }
    }

    fn claims(&mut self, stored: &StoredEvent, event: &ResourceEvent) {
        let Some(state) = self.states.get(&stored.aggregate_id) else { return };
        let live = state.claim.as_ref();
        match event {
            ResourceEvent::Claimed(claim) => {
                assert!(live.is_none(), "two live claims at {}", stored.position);
                assert!(claim.epoch > state.epoch, "epochs rise, not at {}", stored.position);
            }
            ResourceEvent::Worked(worked) => {
                assert_eq!(
                    live.map(|claim| claim.epoch),
                    Some(worked.epoch),
                    "fenced, at {}",
                    stored.position
                );
            }
            ResourceEvent::AttemptFailed(failed) => {
                assert_eq!(
                    live.map(|claim| claim.epoch),
                    Some(failed.epoch),
                    "fenced, at {}",
                    stored.position
                );
            }
            _ => {}
        }
    }

    /// Only a composite that is Ready is looked at.
    fn ready_children(&self, owner: AggregateId, position: Position) {
        let Some(state) = self.states.get(&owner) else { return };
        if state.phase() != Phase::Ready || !state.shape.composes {
            return;
        }
        for child in self.children.get(&state.id().id).into_iter().flatten() {
            let child = &self.states[child];
            assert!(
                child.dropped.is_some() || child.phase() == Phase::Ready,
                "{} is Ready at {position} over {}, which is {}",
                state.id().reference(),
                child.id().reference(),
                child.phase()
            );
        }
    }

    fn nothing_leans_on(&self, id: AggregateId, position: Position) {
        let going = &self.states[&id];
        let leaning = self.states.values().find(|other| {
            other.id().owner() == Some(going.id().id)
                || other.edges.iter().any(|edge| edge.upstream == going.id().id)
        });
        if let Some(leaning) = leaning {
            panic!(
                "{} is torn down at {position} though {} is there",
                going.id().reference(),
                leaning.id().reference()
            );
        }
    }
}
