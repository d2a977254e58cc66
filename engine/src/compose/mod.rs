//! Composition: taking a composer's output as a whole, applying it as a pass, and removing what it dropped.
//!
//! An accepted output lives in the staging table under its claim. The pass that applies it can be run by any
//! control process, any number of times: a child that is already as wanted takes no event, so going on after a
//! crash is the same as starting again.

mod accept;
mod output;
mod pass;
mod prune;

pub(crate) use accept::{Acceptance, accept};

use converge_domain::ResourceId;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Passes that this process is applying: one runner per composer.
#[derive(Default)]
pub(crate) struct Passes {
    running: Mutex<HashSet<ResourceId>>,
}

impl Passes {
    fn begin(&self, composer: ResourceId) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(composer)
    }

    fn end(&self, composer: ResourceId) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&composer);
    }
}
