//! Read models that follow the log.
//!
//! A [`CatchUp`] turns a run of events into row changes; the [`Runner`] feeds it batches and moves its
//! checkpoint in the same transaction, so every event counts exactly once whatever dies in between.
//! The [`Board`] tells readers how far each projection is, and whether it stopped.
//!
//! Invariants, each with a test in `tests/`:
//! 1. rows and checkpoint move together or not at all;
//! 2. of two runners of one projection at most one writes (compare-and-set on epoch and position);
//! 3. an event that cannot be applied stops its projection where it stands; it is never skipped;
//! 4. a projection locks only its own tables.

mod board;
mod checkpoint;
mod error;
mod feed;
mod projection;
pub mod resource_list;
mod runner;
mod tail;

pub use board::{Board, Progress, RunState, WaitError};
pub use checkpoint::{Checkpoint, position_of};
pub use error::ProjectError;
pub use feed::{Feed, Follow};
pub use projection::CatchUp;
pub use resource_list::ResourceList;
pub use runner::{Runner, apply_batch};
