//! Decide first, append in one call.
//!
//! Commands queue in lanes. While one append is in flight the next batch gathers by itself, so an idle log
//! answers at once and a busy one fills its batches, without an artificial delay. A batch is decided in memory
//! from cached or freshly loaded aggregates, several commands of one aggregate chaining on each other, and is
//! then written by one call that compares, guards and appends.
//!
//! A cached aggregate may be stale: another process may have moved it. That is harmless for a decision that
//! appends (its compare-and-set fails and it is decided again), so the two answers that append nothing are
//! the ones to mind: a refusal, and a command that changes nothing, are answered only after the log's head, or the
//! heads themselves, prove the cache right.

mod cache;
mod commit;
mod config;
mod decide;
mod draft;
mod guards;
mod handle;
mod lane;
mod queue;
mod read;
mod settle;
mod size;
mod units;

pub(crate) use cache::Cache;
pub use config::LogConfig;
pub use handle::Log;

use crate::rows::{HeadRow, InlineRows};
use crate::store::{Metadata, StoreError, StoredEvent};
use converge_domain::guard::Guard;
use converge_domain::{
    Address, AggregateId, AnyCommand, AnyState, CommandId, DomainError, Position, Timestamp,
};
use std::collections::HashSet;
use std::sync::Arc;

/// Several commands that commit together or not at all.
#[derive(Clone, Debug, Default)]
pub struct CommandGroup {
    /// Deduplicates retries of the group; None: not deduplicated.
    pub command_id: Option<CommandId>,
    pub metadata: Arc<Metadata>,
    pub steps: Vec<(Address, AnyCommand)>,
    /// Aggregates among the steps whose ids the caller has just made, so that nobody need look for them.
    pub new: HashSet<AggregateId>,
    /// What the caller asks to hold beside the guards that the decisions bring themselves.
    pub guards: Vec<Guard>,
    /// Decisions made over lost races before the group is given up; None: the log's own limit. One that is not
    /// worth repeating, such as a claim of work that others may take as well, sets it low.
    pub attempts_max: Option<u32>,
}

/// A committed (or empty) group.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Position of the group's last event; of the decision (the log's head known then) when it appended nothing.
    pub position: Position,
    pub committed_at: Timestamp,
    /// Per step: its aggregate's state after the group, and the group's events on it (demotions of ancestors not included).
    pub steps: Vec<StepResult>,
}

/// One step's result.
#[derive(Clone, Debug)]
pub struct StepResult {
    pub state: AnyState,
    pub events: Vec<StoredEvent>,
}

/// Why a group did not commit.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ExecuteError {
    /// Domain code refused step `step`.
    #[error("{error}")]
    Domain { step: usize, error: DomainError },
    /// A name is held by another live aggregate; resolve names again.
    #[error("the name is taken by another live resource")]
    NameTaken,
    /// The command id was executed before.
    #[error("the command was executed before")]
    Duplicate,
    /// Heads or guards moved under every attempt.
    #[error("conflicting writers; gave up after {attempts} attempts")]
    Conflict { attempts: u32 },
    /// The queue is full.
    #[error("the engine is overloaded; try again")]
    Overloaded,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log is shutting down; the group was not executed.
    #[error("shutting down")]
    Closed,
}

/// Derives the inline rows of one aggregate. Implemented by `projections`.
pub trait InlineProjector: Send + Sync + 'static {
    /// `before` is the state when the batch began (empty for a new aggregate), `after` the state at its end.
    fn project(&self, address: Address, before: &AnyState, after: &AnyState) -> (HeadRow, InlineRows);
}
