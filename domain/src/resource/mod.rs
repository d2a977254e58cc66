//! Resources: one row of desired state each, and everything that can happen to it.

mod aggregate;
mod apply;
mod commands;
mod composition_conditions;
mod conditions;
mod consequences;
mod decide;
mod due;
mod errors;
mod events;
mod parts;
mod phase;
mod shape;
mod standing;
mod state;

pub use commands::*;
pub use consequences::{Consequences, consequences};
pub use errors::ResourceError;
pub use events::*;
pub use parts::*;
pub use shape::{Reaction, Shape};
pub use standing::Standing;
pub use state::{Deletion, DroppedChild, Identity, ResourceState};
