//! The one place where a phase is derived.

use super::{Phase, ResourceState, Standing};

impl ResourceState {
    /// The lifecycle phase; first match wins.
    pub fn phase(&self) -> Phase {
        Phase::Reconciling
    }

    /// What its owner sees.
    pub fn standing(&self) -> Standing {
        Standing::Open
    }
}
