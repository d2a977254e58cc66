//! Phase counts.

use super::{Phase, Position};
use async_graphql::SimpleObject;
use converge_projections::catch_up::resource_list::{Answer, PhaseTally};

/// How many resources are in which phase.
#[derive(SimpleObject)]
pub struct Summary {
    pub position: Position,
    pub counts: Vec<PhaseCount>,
}

/// How many resources of a kind are in a phase; never 0.
#[derive(SimpleObject)]
pub struct PhaseCount {
    pub kind: String,
    pub phase: Phase,
    pub count: i32,
}

impl From<Answer<Vec<PhaseTally>>> for Summary {
    fn from(answer: Answer<Vec<PhaseTally>>) -> Self {
        let counts = answer
            .value
            .into_iter()
            .map(|tally| PhaseCount {
                kind: tally.kind,
                phase: tally.phase.into(),
                count: i32::try_from(tally.count).unwrap_or(i32::MAX),
            })
            .collect();
        Self { position: answer.position.into(), counts }
    }
}
