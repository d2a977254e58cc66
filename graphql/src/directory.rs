//! What the aggregates behind events are called.
//!
//! An event carries an id; people want `kind/name`. Who an id is never changes, so whatever was looked up
//! once is kept (the least used are forgotten first) and batches are looked up together.

use crate::error::ApiError;
use crate::limits::IDENTITIES_CACHED_MAX;
use converge_domain::kind::KindEvent;
use converge_domain::provider_config::ProviderConfigEvent;
use converge_domain::reactor_binding::ReactorBindingEvent;
use converge_domain::resource::ResourceEvent;
use converge_domain::{AggregateId, AggregateType, AnyEvent, AnyState, ResourceId, Sequence};
use converge_event_store::{Store, StoredEvent};
use converge_projections::catch_up::resource_list::Identities;
use lru::LruCache;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// What one aggregate is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// For a resource its kind; for others the word of their type.
    pub kind: String,
    pub name: String,
    /// The composers above a resource, nearest first.
    pub ancestors: Vec<ResourceId>,
}

pub struct Directory {
    store: Arc<dyn Store>,
    identities: Identities,
    cache: Mutex<LruCache<AggregateId, Arc<Named>>>,
}

/// Names by id; an aggregate that cannot be named (its first event is out of reach) is absent.
pub type Names = HashMap<AggregateId, Arc<Named>>;

impl Directory {
    pub fn new(store: Arc<dyn Store>, identities: Identities) -> Self {
        let capacity = NonZeroUsize::new(IDENTITIES_CACHED_MAX).unwrap_or(NonZeroUsize::MIN);
        Self { store, identities, cache: Mutex::new(LruCache::new(capacity)) }
    }

    /// Names everything that `events` are about: from memory, then from the events themselves, then from
    /// heads, then from the identities of what is gone, last from the start of a stream (an aggregate that
    /// came and went while the projection lagged). Each source is asked once for all that is still missing.
    ///
    /// # Errors
    /// When the store or the database fails.
    pub async fn name(&self, events: &[StoredEvent]) -> Result<Names, ApiError> {
        let mut names = Names::new();
        let mut missing: HashMap<AggregateId, AggregateType> = HashMap::new();
        for event in events {
            if names.contains_key(&event.aggregate_id) {
                continue;
            }
            let known = self.cached(event.aggregate_id).or_else(|| from_event(&event.event).map(Arc::new));
            match known {
                Some(named) => {
                    missing.remove(&event.aggregate_id);
                    names.insert(event.aggregate_id, named);
                }
                None => {
                    missing.insert(event.aggregate_id, event.aggregate_type);
                }
            }
        }
        if !missing.is_empty() {
            self.look_up(missing, &mut names).await?;
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, named) in &names {
            cache.put(*id, Arc::clone(named));
        }
        Ok(names)
    }

    /// Everything that bears or bore a resource name, newest first, as far as the projection has seen.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn named(&self, kind: &str, name: &str, limit: u32) -> Result<Vec<AggregateId>, ApiError> {
        let rows = self.identities.named(kind, name, limit).await?;
        Ok(rows.into_iter().map(|row| row.id.into()).collect())
    }

    async fn look_up(
        &self,
        mut missing: HashMap<AggregateId, AggregateType>,
        names: &mut Names,
    ) -> Result<(), ApiError> {
        let ids: Vec<AggregateId> = missing.keys().copied().collect();
        for head in self.store.heads(&ids).await? {
            if let Some(named) = from_state(&head.state) {
                missing.remove(&head.id);
                names.insert(head.id, Arc::new(named));
            }
        }
        let gone: Vec<ResourceId> = missing
            .iter()
            .filter(|(_, aggregate_type)| **aggregate_type == AggregateType::Resource)
            .map(|(id, _)| ResourceId(id.0))
            .collect();
        if !gone.is_empty() {
            for row in self.identities.of(&gone).await? {
                let id = AggregateId::from(row.id);
                missing.remove(&id);
                names
                    .insert(id, Arc::new(Named { kind: row.kind, name: row.name, ancestors: row.ancestors }));
            }
        }
        for id in missing.into_keys() {
            let start = self.store.read_stream(id, Sequence(0), 1).await?;
            if let Some(named) = start.first().and_then(|event| from_event(&event.event)) {
                names.insert(id, Arc::new(named));
            }
        }
        Ok(())
    }

    fn cached(&self, id: AggregateId) -> Option<Arc<Named>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

fn from_event(event: &AnyEvent) -> Option<Named> {
    match event {
        AnyEvent::Resource(ResourceEvent::Created(created)) => Some(Named {
            kind: created.kind.clone(),
            name: created.name.clone(),
            ancestors: created.ancestors.clone(),
        }),
        AnyEvent::Resource(_) => None,
        AnyEvent::Kind(KindEvent::Published { manifest, .. }) => {
            Some(other(AggregateType::Kind, manifest.kind_ref().to_string()))
        }
        AnyEvent::ProviderConfig(ProviderConfigEvent::Declared { document, .. }) => {
            Some(other(AggregateType::ProviderConfig, document.name.clone()))
        }
        AnyEvent::ReactorBinding(ReactorBindingEvent::Declared { document, .. }) => {
            Some(other(AggregateType::ReactorBinding, document.name.clone()))
        }
        AnyEvent::Kind(_) | AnyEvent::ProviderConfig(_) | AnyEvent::ReactorBinding(_) => None,
    }
}

fn from_state(state: &AnyState) -> Option<Named> {
    match state {
        AnyState::Resource(state) => state.identity.as_deref().map(|identity| Named {
            kind: identity.kind.clone(),
            name: identity.name.clone(),
            ancestors: identity.ancestors.clone(),
        }),
        AnyState::Kind(state) => state
            .manifest
            .as_ref()
            .map(|manifest| other(AggregateType::Kind, manifest.kind_ref().to_string())),
        AnyState::ProviderConfig(state) => state
            .document
            .as_ref()
            .map(|document| other(AggregateType::ProviderConfig, document.name.clone())),
        AnyState::ReactorBinding(state) => state
            .document
            .as_ref()
            .map(|document| other(AggregateType::ReactorBinding, document.name.clone())),
    }
}

fn other(aggregate_type: AggregateType, name: String) -> Named {
    Named { kind: aggregate_type.as_str().to_owned(), name, ancestors: Vec::new() }
}
