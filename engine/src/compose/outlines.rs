//! Outlines between their acceptance and their pass.
//!
//! Both mostly happen in one process, a moment apart; reading an output again for the pass would double the cost of a
//! composition. What is lost here is read again.

use super::outline::Outline;
use converge_domain::ClaimId;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Children of all outlines kept: about 150 MB of them.
const CHILDREN_MAX: usize = 1_500_000;
/// Outlines that keep their payloads too, at most 1 MB each.
const WHOLE_MAX: usize = 32;
/// Outlines kept, however small.
const OUTLINES_MAX: usize = 10_000;

/// Accepted outlines that wait for their pass, oldest first.
#[derive(Default)]
pub(crate) struct Outlines {
    waiting: Mutex<VecDeque<Outline>>,
}

impl Outlines {
    /// Keeps an outline. Passes begin in the order of acceptance, so where there are too many, the newest lose their
    /// payloads; only then the oldest go, since a pass that never comes must not take up room for ever.
    pub fn keep(&self, mut outline: Outline) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WHOLE_MAX {
            outline.forget_payloads();
        }
        waiting.push_back(outline);
        let mut children: usize = waiting.iter().map(Outline::len).sum();
        while children > CHILDREN_MAX || waiting.len() > OUTLINES_MAX {
            let Some(oldest) = waiting.pop_front() else { return };
            children -= oldest.len();
        }
    }

    /// Hands out the outline of a claim.
    pub fn take(&self, claim_id: ClaimId) -> Option<Outline> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().position(|outline| outline.claim_id() == claim_id)?;
        waiting.remove(at)
    }
}
