//! What all watches of a process share, so that a thousand of them cost little more than what they deliver.
//!
//! Each watch pulls the log by itself (see `follow`), and live ones are handed the very same batches. Whatever depends on
//! the batch alone is done once: naming what its events are about, ordering them by name, folding states. What
//! is left for a watch that a batch does not concern is one binary search.

use super::folds::{Folds, Step};
use crate::directory::{Directory, Named, Names};
use crate::error::ApiError;
use crate::limits::WATCHED_BATCHES_MAX;
use converge_domain::{AggregateId, AnyEvent, Position, ResourceId, Timestamp};
use converge_event_store::{Store, StoredEvent};
use converge_projections::catch_up::resource_list::Filter;
use lru::LruCache;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Names, batches and states for every watch of the process.
pub struct Shared {
    directory: Arc<Directory>,
    batches: Mutex<LruCache<Run, Arc<OnceCell<Arc<Batch>>>>>,
    folds: tokio::sync::Mutex<Folds>,
}

/// What tells a run of events from any other: where it begins and ends, and (ids are random) in which history of the log.
type Run = [(Position, AggregateId, Timestamp); 2];

/// A run of the log, named.
pub struct Batch {
    events: Arc<Vec<StoredEvent>>,
    names: Names,
    /// Indexes of the events of each resource, in order.
    of: HashMap<AggregateId, Vec<usize>>,
    /// Events of resources by kind, name and place.
    by_name: Vec<(Arc<Named>, usize)>,
    /// The runs of one kind each in it.
    kinds: Vec<Range<usize>>,
    /// Events of resources that cannot be named (yet).
    unnamed: Vec<usize>,
    /// What was folded, by index.
    steps: tokio::sync::Mutex<HashMap<usize, Step>>,
}

impl Shared {
    pub fn new(directory: Arc<Directory>, store: Arc<dyn Store>) -> Self {
        let capacity = NonZeroUsize::new(WATCHED_BATCHES_MAX).unwrap_or(NonZeroUsize::MIN);
        Self {
            directory,
            batches: Mutex::new(LruCache::new(capacity)),
            folds: tokio::sync::Mutex::new(Folds::new(store)),
        }
    }

    /// The batch of `events`, which are in the order of the log. Who comes first makes it, the others wait for it. A
    /// failure is not kept: the next one tries again.
    ///
    /// # Errors
    /// When something cannot be named.
    pub async fn batch(&self, events: Arc<Vec<StoredEvent>>) -> Result<Arc<Batch>, ApiError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return Ok(Arc::new(Batch::new(events, Names::new())));
        };
        let run = [first, last].map(|event| (event.position, event.aggregate_id, event.committed_at));
        let cell = {
            let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(batches.get_or_insert(run, Arc::default))
        };
        let named = async {
            let names = self.directory.name(&events).await?;
            Ok::<_, ApiError>(Arc::new(Batch::new(Arc::clone(&events), names)))
        };
        cell.get_or_try_init(|| named).await.cloned()
    }

    /// The resources of the events at `indexes` of `batch`, around each of these events.
    ///
    /// # Errors
    /// When a stream cannot be read.
    pub async fn steps(&self, batch: &Batch, indexes: &[usize]) -> Result<Vec<Step>, ApiError> {
        if indexes.is_empty() {
            return Ok(Vec::new());
        }
        // Always the batch's lock before that of the folds, so that two watches never wait for each other.
        let mut steps = batch.steps.lock().await;
        let mut missing: Vec<usize> = Vec::new();
        for index in indexes.iter().filter(|index| !steps.contains_key(index)) {
            // A resource is folded past all its events of the batch: the next batch goes on from there.
            let of = batch.events.get(*index).and_then(|event| batch.of.get(&event.aggregate_id));
            missing.extend(of.into_iter().flatten());
        }
        if !missing.is_empty() {
            missing.sort_unstable();
            missing.dedup();
            let events: Vec<&StoredEvent> =
                missing.iter().filter_map(|index| batch.events.get(*index)).collect();
            let folded = self.folds.lock().await.steps(&events).await?;
            steps.extend(missing.into_iter().zip(folded));
        }
        Ok(indexes.iter().filter_map(|index| steps.get(index)).cloned().collect())
    }
}

impl Batch {
    fn new(events: Arc<Vec<StoredEvent>>, names: Names) -> Self {
        let mut of = HashMap::<AggregateId, Vec<usize>>::new();
        let (mut by_name, mut unnamed) = (Vec::new(), Vec::new());
        for (index, event) in events.iter().enumerate() {
            if !matches!(event.event, AnyEvent::Resource(_)) {
                continue;
            }
            of.entry(event.aggregate_id).or_default().push(index);
            match names.get(&event.aggregate_id) {
                Some(named) => by_name.push((Arc::clone(named), index)),
                None => unnamed.push(index),
            }
        }
        by_name.sort_by(|(a, i), (b, j)| (&a.kind, &a.name, i).cmp(&(&b.kind, &b.name, j)));
        let mut kinds = Vec::<Range<usize>>::new();
        for same in by_name.chunk_by(|(a, _), (b, _)| a.kind == b.kind) {
            let start = kinds.last().map_or(0, |range| range.end);
            kinds.push(start..start + same.len());
        }
        Self { events, names, of, by_name, kinds, unnamed, steps: tokio::sync::Mutex::default() }
    }

    /// Everything, in order.
    pub fn events(&self) -> &[StoredEvent] {
        &self.events
    }

    /// What an aggregate is called, if it can be named.
    pub fn named(&self, id: AggregateId) -> Option<&Arc<Named>> {
        self.names.get(&id)
    }

    /// The event at an index.
    pub fn event(&self, index: usize) -> Option<&StoredEvent> {
        self.events.get(index)
    }

    /// Indexes of the events whose resource the filter may admit, in order. Kind, name, owner and root never change, so
    /// whatever they rule out needs no folding.
    pub fn possible(&self, filter: &Filter) -> Vec<usize> {
        let mut found = self.unnamed.clone();
        let prefix = filter.name_prefix.as_deref().unwrap_or_default();
        for kind in self.kinds.iter().filter_map(|range| self.by_name.get(range.clone())) {
            let is_wanted = filter
                .kind
                .as_ref()
                .is_none_or(|wanted| kind.first().is_some_and(|(named, _)| named.kind == *wanted));
            if !is_wanted {
                continue;
            }
            let start = kind.partition_point(|(named, _)| named.name.as_str() < prefix);
            let alike = kind.iter().skip(start).take_while(|(named, _)| named.name.starts_with(prefix));
            found.extend(alike.filter(|(named, index)| self.admits(filter, named, *index)).map(|(_, i)| *i));
        }
        found.sort_unstable();
        found
    }

    fn admits(&self, filter: &Filter, named: &Named, index: usize) -> bool {
        self.events.get(index).is_some_and(|event| {
            let id = ResourceId(event.aggregate_id.0);
            filter.admits_identity(&named.kind, &named.name, id, &named.ancestors)
        })
    }
}
