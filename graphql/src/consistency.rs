//! Read your writes, and say what was read.
//!
//! A mutation answers with a position; a query given it as `minPosition` answers from that point or later.
//! Heads are written with their events, so every committed position is in them already. The list lags; a
//! read of it waits, and looks at the position its own snapshot shows before it believes the wait (the
//! snapshot may come from a replica).

use crate::error::ApiError;
use crate::state::ApiState;
use converge_domain::Position;
use converge_projections::catch_up::resource_list::{Answer, ReadError};
use converge_projections::catch_up::{ResourceList, WaitError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How soon a read looks again when its snapshot was behind.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The lowest position any part of one response was read at; goes into `extensions.position`.
#[derive(Clone, Default)]
pub struct ReadStamp(Arc<Mutex<Option<Position>>>);

impl ReadStamp {
    /// Notes that some part of the response shows the log up to `position`.
    pub fn note(&self, position: Position) {
        let mut lowest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *lowest = Some(lowest.map_or(position, |lowest| lowest.min(position)));
    }

    pub fn get(&self) -> Option<Position> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes a position on the request's stamp, if it has one.
pub fn note(ctx: &async_graphql::Context<'_>, position: Position) {
    if let Some(stamp) = ctx.data_opt::<ReadStamp>() {
        stamp.note(position);
    }
}

/// A position that heads read *after* this call include: the end of the log, read before them. They may
/// show more than it says, never less.
///
/// # Errors
/// `BAD_REQUEST` when `min` is beyond the end of the log, `UNAVAILABLE` when the store is away.
pub async fn heads_position(state: &ApiState, min: Option<Position>) -> Result<Position, ApiError> {
    let head = state.store.log_head().await?.position;
    refuse_beyond(min, head)?;
    Ok(head)
}

/// Reads the list at `min` or later.
///
/// # Errors
/// `BAD_REQUEST` when `min` is beyond the end of the log; `UNAVAILABLE` when the list does not get there in
/// time or stopped before it.
pub async fn list_at_least<T, F>(
    state: &ApiState,
    min: Option<Position>,
    read: impl Fn() -> F,
) -> Result<Answer<T>, ApiError>
where
    F: Future<Output = Result<Answer<T>, ReadError>>,
{
    let Some(wanted) = min else { return Ok(read().await?) };
    if wanted > state.feed.head() {
        // Another process may have appended what this one has not heard of yet; the store knows.
        refuse_beyond(min, state.store.log_head().await?.position)?;
    }
    let deadline = Instant::now() + state.limits.min_position_wait;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match state.board.wait(ResourceList::NAME, wanted, left).await {
            // Not run in this process: the stored checkpoint below is all there is to look at.
            Ok(_) | Err(WaitError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let answer = read().await?;
        if answer.position >= wanted {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            let position = answer.position;
            return Err(WaitError::TimedOut { name: ResourceList::NAME.to_owned(), position, wanted }.into());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn refuse_beyond(min: Option<Position>, head: Position) -> Result<(), ApiError> {
    match min {
        Some(min) if min > head => Err(ApiError::bad_request(format!(
            "minPosition {min} is beyond the end of the log, which is at {head}"
        ))),
        _ => Ok(()),
    }
}
