//! Pages of the log for followers that have fallen out of memory.
//!
//! Those who are behind are mostly behind together: a thousand subscribers that cannot be served as fast as the log grows, or
//! that all replay the same day. So the past is read in pages that begin at fixed positions, each once for whoever wants
//! it meanwhile, and everybody is handed the very same events. A page is read only when the frontier has passed its end: then it
//! never changes.

use crate::store::{Store, StoreError, StoredEvent};
use converge_domain::Position;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Events of a page.
const PAGE: u32 = 1000;
/// Pages kept; some megabytes each.
const PAGES_MAX: NonZeroUsize = NonZeroUsize::new(16).expect("not zero");

type Page = Arc<Vec<StoredEvent>>;

/// The pages that were read last.
pub(super) struct Pages {
    kept: Mutex<LruCache<Key, Arc<OnceCell<Page>>>>,
}

/// Which replacement of the log's history it belongs to, and its first position.
type Key = (u64, u64);

impl Default for Pages {
    fn default() -> Self {
        Self { kept: Mutex::new(LruCache::new(PAGES_MAX)) }
    }
}

impl Pages {
    /// Events right behind `after`, which lies before `frontier`; contiguous, at least one, none beyond the frontier.
    ///
    /// # Errors
    /// When the store cannot be read, or misses positions.
    pub async fn behind(
        &self,
        store: &dyn Store,
        history: u64,
        after: Position,
        frontier: Position,
    ) -> Result<Page, StoreError> {
        let start = after.0 - after.0 % u64::from(PAGE);
        if start + u64::from(PAGE) > frontier.0 {
            // The end of the log, out of memory only since this process is new. What is not known to be contiguous with our
            // own lanes' commits would come out again from memory, so not beyond the frontier.
            let mut events = store.read(after, PAGE).await?;
            events.retain(|event| event.position <= frontier);
            return contiguous(after, events).map(Arc::new);
        }
        let cell = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(kept.get_or_insert((history, start), Arc::default))
        };
        let read = async || {
            let events = contiguous(Position(start), store.read(Position(start), PAGE).await?)?;
            Ok::<_, StoreError>(Arc::new(events))
        };
        let page = cell.get_or_try_init(read).await?;
        let known = usize::try_from(after.0 - start).unwrap_or(usize::MAX);
        match known {
            0 => Ok(Arc::clone(page)),
            _ => match page.get(known..) {
                Some(rest) if !rest.is_empty() => Ok(Arc::new(rest.to_vec())),
                _ => Err(missing(after)),
            },
        }
    }
}

fn contiguous(after: Position, events: Vec<StoredEvent>) -> Result<Vec<StoredEvent>, StoreError> {
    let mut expected = after;
    for event in &events {
        expected = expected.next();
        if event.position != expected {
            return Err(missing(Position(expected.0 - 1)));
        }
    }
    if events.is_empty() { Err(missing(after)) } else { Ok(events) }
}

fn missing(after: Position) -> StoreError {
    StoreError::Corrupt(format!("position {} is missing", after.next()))
}
