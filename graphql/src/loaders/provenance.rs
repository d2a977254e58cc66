//! Which events gave the values that flowed into many resources.

use crate::error::ApiError;
use crate::limits::PROVENANCE_EVENTS_MAX;
use async_graphql::dataloader::Loader;
use converge_domain::resource::{Input, ResourceEvent};
use converge_domain::{AnyEvent, Position, ResourceId, Sequence};
use converge_event_store::{Store, StoredEvent};
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Streams read at once, as for recent events.
const READS_AT_ONCE: usize = 8;
/// Events read at a time.
const PAGE: u64 = 200;

/// An input of `dependent`, as its state at `sequence` has it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProvenanceKey {
    pub dependent: ResourceId,
    pub sequence: u64,
    pub field: String,
    pub source: ResourceId,
    pub source_field: String,
    pub source_sequence: u64,
}

impl ProvenanceKey {
    fn is_given_by(&self, input: &Input) -> bool {
        self.field == input.field
            && self.source == input.source
            && self.source_field == input.source_field
            && self.source_sequence == input.source_sequence
    }
}

pub struct Provenance {
    pub(super) store: Arc<dyn Store>,
}

impl Loader<ProvenanceKey> for Provenance {
    type Value = Position;
    type Error = ApiError;

    async fn load(&self, keys: &[ProvenanceKey]) -> Result<HashMap<ProvenanceKey, Position>, ApiError> {
        tracing::trace!(keys = keys.len(), "loading provenance");
        // One walk over a dependent's stream for everything that flowed into it.
        let mut wanted: HashMap<(ResourceId, u64), HashSet<ProvenanceKey>> = HashMap::new();
        for key in keys {
            wanted.entry((key.dependent, key.sequence)).or_default().insert(key.clone());
        }
        let walks =
            wanted.into_iter().map(|((dependent, sequence), keys)| self.walk(dependent, sequence, keys));
        let found: Vec<Vec<_>> =
            futures::stream::iter(walks).buffer_unordered(READS_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }
}

impl Provenance {
    /// Backwards from the state's own end: an input is replaced as a whole whenever its value changes, so the event that gave it is
    /// the last one that carries it.
    async fn walk(
        &self,
        dependent: ResourceId,
        sequence: u64,
        mut wanted: HashSet<ProvenanceKey>,
    ) -> Result<Vec<(ProvenanceKey, Position)>, ApiError> {
        let (mut found, mut end) = (Vec::new(), sequence);
        let stop = sequence.saturating_sub(PROVENANCE_EVENTS_MAX);
        while end > stop && !wanted.is_empty() {
            let after = end.saturating_sub(PAGE).max(stop);
            // At most `PAGE`, which fits.
            let limit = u32::try_from(end - after).unwrap_or(u32::MAX);
            let page = self.store.read_stream(dependent.into(), Sequence(after), limit).await?;
            for stored in page.iter().rev() {
                for input in inputs(stored) {
                    let given: Vec<ProvenanceKey> =
                        wanted.iter().filter(|key| key.is_given_by(input)).cloned().collect();
                    for key in given {
                        wanted.remove(&key);
                        found.push((key, stored.position));
                    }
                }
            }
            end = after;
        }
        Ok(found)
    }
}

/// The values that an event gave.
fn inputs(stored: &StoredEvent) -> &[Input] {
    match &stored.event {
        AnyEvent::Resource(ResourceEvent::UpstreamsEvaluated(evaluated)) => &evaluated.inputs,
        _ => &[],
    }
}
