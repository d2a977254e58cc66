//! Kinds: the types of resources, taught to the running engine as manifests.

mod aggregate;
mod check;
mod commands;
mod errors;
mod events;
pub mod gate;
pub mod manifest;
mod warnings;

pub use aggregate::KindState;
pub use check::check;
pub use commands::KindCommand;
pub use errors::KindError;
pub use events::KindEvent;
pub use manifest::{
    Compare, DriftPolicy, Emit, ImmutablePolicy, Knobs, Manifest, PrinterColumn, ReactionSpec, Trigger,
};
pub use warnings::warnings;

#[cfg(test)]
mod tests;
