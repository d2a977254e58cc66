//! What is to be done next. `worked` and `composed` lag behind the counters: that lag is the whole work list.

use super::{Gate, Reaction, ResourceState, Standing};

impl ResourceState {
    /// The reaction that may be claimed now, retry time and upstreams' live state aside (the claim's guards
    /// check those). None while a claim or a pass is live: at most one thing happens at a time.
    pub fn due(&self) -> Option<Reaction> {
        if !self.exists() || self.claim.is_some() || self.pass.is_some() {
            return None;
        }
        if let Some(deletion) = &self.deletion {
            return (deletion.open && !self.finalizers.is_empty()).then_some(Reaction::Teardown);
        }
        if self.quarantine.is_some() || self.dropped.is_some() || self.behind.is_some() || self.has_failed() {
            return None;
        }
        let upstreams_let_it = self.gate == Gate::Open && self.unresolved.is_empty();
        if self.work_is_behind() {
            upstreams_let_it.then_some(Reaction::Work)
        } else if self.composition_is_behind() {
            upstreams_let_it.then_some(Reaction::Compose)
        } else if self.rollup_is_due() {
            Some(Reaction::Rollup)
        } else {
            self.observation_is_due().then_some(Reaction::Observe)
        }
    }

    /// A resync was asked for, and there is a reaction that can look.
    pub fn observation_is_due(&self) -> bool {
        (self.shape.works || self.shape.observes) && self.resynced < self.resync
    }

    /// The world was not yet made to match the live generation and round.
    pub fn work_is_behind(&self) -> bool {
        self.shape.works && self.worked != Some((self.generation, self.round))
    }

    /// The children were not yet composed for the live generation and compose round.
    pub fn composition_is_behind(&self) -> bool {
        self.shape.composes && self.composed != Some((self.generation, self.compose_round))
    }

    /// A rollup is owed and the subtree is settled.
    pub fn rollup_is_due(&self) -> bool {
        self.shape.rolls_up && self.rollup_owed && self.subtree != Standing::Open
    }

    /// Lower goes first: declared edits, then follow-ups, then retries.
    pub fn priority(&self) -> i16 {
        match self.due() {
            _ if self.attempts > 0 => 2,
            Some(Reaction::Work) if self.worked.is_none() => 0,
            Some(Reaction::Compose) => 0,
            Some(Reaction::Observe) => 3,
            _ => 1,
        }
    }
}
