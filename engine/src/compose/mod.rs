//! Composition: taking a composer's output as a whole, applying it as a pass, and removing what it dropped.
//!
//! An accepted output lives in the staging table under its claim. The pass that applies it can be run by any
//! control process, any number of times: a child that is already as wanted takes no event, so going on after a
//! crash is the same as starting again.

mod accept;
mod configs;
mod layers;
mod outline;
mod outlines;
mod pass;
mod prune;
mod room;
mod unwanted;
mod write;

pub(crate) use accept::{Acceptance, accept};
pub(crate) use configs::collect_configs_of_gone;
pub(crate) use outlines::Outlines;
pub(crate) use room::Room;

use converge_domain::ResourceId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Passes that this process is applying: one runner per composer.
#[derive(Default)]
pub(crate) struct Passes {
    /// By composer: whether a wake came while its runner was at work.
    running: Mutex<HashMap<ResourceId, bool>>,
}

impl Passes {
    /// Whether the caller is to run. One that runs already is told that it was asked for again.
    fn begin(&self, composer: ResourceId) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(&composer) {
            Some(asked_again) => {
                *asked_again = true;
                false
            }
            None => {
                running.insert(composer, false);
                true
            }
        }
    }

    /// Whether it was asked for again meanwhile: then what the runner saw may be old, and it must be woken.
    fn end(&self, composer: ResourceId) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&composer).unwrap_or(false)
    }
}
