//! The one place where phase and standing are derived. Everything else stores or shows what this says.

use super::{Gate, Phase, Reaction, ResourceState, Standing};

impl ResourceState {
    /// The lifecycle phase; first match wins.
    pub fn phase(&self) -> Phase {
        if self.deletion.is_some() {
            Phase::Deleting
        } else if self.quarantine.is_some() {
            Phase::Quarantined
        } else if self.has_failed() {
            Phase::Failed
        } else if self.dropped.as_ref().is_some_and(|dropped| dropped.kept) {
            Phase::Orphaned
        } else if !self.is_synced() || self.behind.is_some() {
            Phase::Reconciling
        } else if !self.healthy || self.subtree == Standing::Impaired || self.rollup_failed {
            Phase::Degraded
        } else if self.subtree == Standing::AllReady && !self.loud_rollup_owed() {
            Phase::Ready
        } else {
            Phase::Reconciling
        }
    }

    /// The live generation is reconciled.
    pub fn is_synced(&self) -> bool {
        self.identity.is_some() && self.synced_gen == self.generation
    }

    /// Its own reconcile failed for the live generation.
    pub fn has_failed(&self) -> bool {
        self.failed_gen == Some(self.generation)
    }

    /// What its owner sees: whether it still moves, and if not, whether it is well.
    pub fn standing(&self) -> Standing {
        if !self.exists() {
            return Standing::LeftOut;
        }
        if self.deletion.is_some() {
            return Standing::Open;
        }
        if self.quarantine.is_some() || self.dropped.is_some() {
            return Standing::LeftOut;
        }
        if self.has_failed() {
            return Standing::Impaired;
        }
        if self.is_running() || self.behind.is_some() {
            return Standing::Open;
        }
        if self.work_is_behind() || self.composition_is_behind() {
            return if self.gate == Gate::Blocked { Standing::Impaired } else { Standing::Open };
        }
        // It ran before and keeps its phase, but a flow of it has no value: it waits like one that has yet to run.
        if !self.unresolved.is_empty() {
            return if self.gate == Gate::Blocked { Standing::Impaired } else { Standing::Open };
        }
        // A Degraded node owes its dependents nothing until it is Ready again: flows read a Ready status only.
        let degraded = self.phase() == Phase::Degraded;
        let moving = (self.propagation_owed && !degraded)
            || self.subtree == Standing::Open
            || self.loud_rollup_owed()
            || !self.is_synced();
        if moving {
            Standing::Open
        } else if degraded {
            Standing::Impaired
        } else {
            Standing::AllReady
        }
    }

    /// A task or a pass is under way. A rollup that only refreshes a status and a look at the world do not count: they move no
    /// phase.
    fn is_running(&self) -> bool {
        let moves = |reaction| match reaction {
            Reaction::Rollup => !self.rollup_quiet,
            Reaction::Observe => false,
            Reaction::Work | Reaction::Compose | Reaction::Teardown => true,
        };
        self.pass.is_some() || self.claim.as_ref().is_some_and(|claim| moves(claim.reaction))
    }

    /// A rollup is owed for another reason than a descendant's changed status.
    fn loud_rollup_owed(&self) -> bool {
        self.rollup_owed && !self.rollup_quiet
    }
}
