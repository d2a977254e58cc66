//! Kinds: the types of resources, taught to the running engine as manifests.

mod aggregate;
mod commands;
mod errors;
mod events;
mod manifest;

pub use aggregate::KindState;
pub use commands::KindCommand;
pub use errors::KindError;
pub use events::KindEvent;
pub use manifest::{
    Compare, DriftPolicy, Emit, ImmutablePolicy, Knobs, Manifest, PrinterColumn, ReactionSpec, Trigger,
};
