//! A log, read whole, and questions about it.

use converge_domain::resource::{ResourceEvent, ResourceState};
use converge_domain::{AggregateId, AggregateType, AnyEvent, AnyState, Position};
use converge_event_store::{Store, StoredEvent};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const PAGE: u32 = 5000;

/// Every event up to some position.
#[derive(Debug, Default)]
pub struct History {
    pub events: Vec<StoredEvent>,
}

impl History {
    pub async fn read(store: &dyn Store) -> Self {
        let mut history = Self::default();
        history.read_on(store).await;
        history
    }

    /// Adds what was appended since.
    pub async fn read_on(&mut self, store: &dyn Store) {
        loop {
            let page = store.read(self.end(), PAGE).await.expect("the log can be read");
            if page.is_empty() {
                return;
            }
            self.events.extend(page);
        }
    }

    pub fn end(&self) -> Position {
        self.events.last().map_or(Position(0), |stored| stored.position)
    }

    /// The resources' events, with the resource's `(kind, name)`.
    pub fn resources(&self) -> impl Iterator<Item = ((String, String), &StoredEvent, &ResourceEvent)> {
        let mut names: HashMap<AggregateId, (String, String)> = HashMap::new();
        self.events.iter().filter_map(move |stored| {
            let AnyEvent::Resource(event) = &stored.event else { return None };
            if let ResourceEvent::Created(created) = event {
                names.insert(stored.aggregate_id, (created.kind.clone(), created.name.clone()));
            }
            Some((names[&stored.aggregate_id].clone(), stored, event))
        })
    }

    /// For every resource with an event after `after`, the names of those events in order.
    pub fn stories_after(&self, after: Position) -> BTreeMap<(String, String), Vec<&'static str>> {
        let mut stories: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (subject, stored, event) in self.resources() {
            if stored.position > after {
                stories.entry(subject).or_default().push(event.name());
            }
        }
        stories
    }

    /// How many events of that name there are.
    pub fn count(&self, name: &str) -> usize {
        self.resources().filter(|(_, _, event)| event.name() == name).count()
    }

    /// Every aggregate, folded by domain code alone.
    pub fn fold(&self) -> HashMap<AggregateId, AnyState> {
        let mut states = HashMap::new();
        for stored in &self.events {
            states
                .entry(stored.aggregate_id)
                .or_insert_with(|| AnyState::empty(stored.aggregate_type))
                .apply(&stored.event);
        }
        states
    }

    /// The live resources, folded.
    pub fn live(&self) -> BTreeMap<(String, String), Arc<ResourceState>> {
        let states = self.fold().into_values();
        let resources = states.filter(|state| state.aggregate_type() == AggregateType::Resource);
        resources
            .filter_map(|state| state.as_resource().filter(|resource| resource.exists()).cloned())
            .map(|resource| ((resource.id().kind.clone(), resource.id().name.clone()), resource))
            .collect()
    }

    /// The last `most` events, for a failing test's message.
    pub fn tail(&self, most: usize) -> String {
        let lines: Vec<String> = self
            .resources()
            .map(|((kind, name), stored, event)| {
                format!("{} {kind}/{name} {}", stored.position, event.name())
            })
            .collect();
        lines[lines.len().saturating_sub(most)..].join("\n")
    }
}
