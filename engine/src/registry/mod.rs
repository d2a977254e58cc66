//! The live kinds and provider configs, in memory, kept current by the tail.
//!
//! A manifest is read on every claim and apply, and changes a few times a day: it is held compiled, behind an
//! `Arc` swapped as a whole, so that a reader sees one manifest throughout a decision.

use crate::dispatch::ProviderConfigSnapshot;
use base64::Engine as _;
use bytes::Bytes;
use converge_domain::document::ProviderConfigDocument;
use converge_domain::kind::Manifest;
use converge_domain::provider_config::ProviderConfigState;
use converge_domain::schema::CompiledSchema;
use converge_domain::{AggregateId, AggregateType, AnyState, KindRef, ResourceId, named};
use converge_event_store::{Store, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

/// A kind version, ready for use.
#[derive(Clone)]
pub struct KindEntry {
    pub manifest: Arc<Manifest>,
    pub spec_schema: Option<Arc<CompiledSchema>>,
    pub config_schema: Option<Arc<CompiledSchema>>,
    pub shape: Arc<converge_domain::resource::Shape>,
}

/// A provider config, ready for use.
#[derive(Clone)]
pub struct ConfigEntry {
    pub document: Arc<ProviderConfigDocument>,
    /// The composer that made it; None: a user.
    pub owner: Option<ResourceId>,
    pub snapshot: ProviderConfigSnapshot,
}

/// Every live kind version and provider config.
#[derive(Default)]
pub struct Registry {
    inner: RwLock<Inner>,
    /// One reload at a time: of two that read side by side, the one that read earlier could install its answer last and
    /// bring an old manifest back.
    reloading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Inner {
    kinds: HashMap<KindRef, KindEntry>,
    configs: HashMap<String, ConfigEntry>,
}

impl KindEntry {
    /// Compiles a manifest.
    ///
    /// # Errors
    /// When a schema does not compile; the gateway refuses such manifests, so a stored one does.
    pub fn compile(manifest: Arc<Manifest>) -> Result<Self, String> {
        let compile = |schema: &Option<serde_json::Value>| {
            schema.as_ref().map(|schema| CompiledSchema::compile(schema).map(Arc::new)).transpose()
        };
        Ok(Self {
            spec_schema: compile(&manifest.spec_schema)?,
            config_schema: compile(&manifest.config_schema)?,
            shape: Arc::new(manifest.shape()),
            manifest,
        })
    }
}

impl Registry {
    /// Reads all kinds and configs.
    pub(crate) async fn load(store: &dyn Store) -> Result<Self, StoreError> {
        let registry = Self::default();
        registry.reload(store, AggregateType::Kind).await?;
        registry.reload(store, AggregateType::ProviderConfig).await?;
        Ok(registry)
    }

    /// Reads the heads of one type again: they change rarely, and a whole read cannot miss one.
    pub(crate) async fn reload(
        &self,
        store: &dyn Store,
        aggregate_type: AggregateType,
    ) -> Result<(), StoreError> {
        let _turn = self.reloading.lock().await;
        let heads = store.heads_of_type(aggregate_type).await?;
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if aggregate_type == AggregateType::Kind {
            inner.kinds.clear();
        } else if aggregate_type == AggregateType::ProviderConfig {
            inner.configs.clear();
        }
        for head in heads {
            match &head.state {
                AnyState::Kind(kind) => {
                    let Some(manifest) = kind.manifest.clone() else { continue };
                    match KindEntry::compile(manifest.clone()) {
                        Ok(entry) => {
                            inner.kinds.insert(manifest.kind_ref(), entry);
                        }
                        Err(error) => {
                            tracing::error!(kind = %manifest.kind_ref(), %error, "a stored manifest does not compile");
                        }
                    }
                }
                AnyState::ProviderConfig(config) => {
                    if let Some(entry) = config_entry(config) {
                        inner.configs.insert(entry.document.name.clone(), entry);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes sure that a kind version which is stored is known here too. The tail brings news within milliseconds, but
    /// whoever has the answer to an apply, or works for a process that is further on, must not be told otherwise.
    pub(crate) async fn ensure(
        &self,
        store: &dyn Store,
        mut wanted: impl Iterator<Item = KindRef>,
    ) -> Result<(), StoreError> {
        if wanted.any(|kind| self.kind(&kind).is_none()) {
            self.reload(store, AggregateType::Kind).await?;
        }
        Ok(())
    }

    /// The live manifest of a kind version.
    pub fn kind(&self, kind: &KindRef) -> Option<KindEntry> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).kinds.get(kind).cloned()
    }

    /// All kind versions, ordered.
    pub fn kinds(&self) -> Vec<KindEntry> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let mut kinds: Vec<_> = inner.kinds.values().cloned().collect();
        kinds.sort_by_key(|entry| entry.manifest.kind_ref());
        kinds
    }

    /// The provider config of that name.
    pub fn config(&self, name: &str) -> Option<ConfigEntry> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).configs.get(name).cloned()
    }

    /// The name of the config of that id, as of the last reload.
    pub(crate) fn config_name(&self, id: AggregateId) -> Option<String> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = |name: &&String| named(AggregateType::ProviderConfig.as_str(), name) == id.0;
        inner.configs.keys().find(is_it).cloned()
    }

    /// Names of the configs that a composer made, in order.
    pub(crate) fn configs_of(&self, composer: ResourceId) -> Vec<String> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let owned = inner.configs.values().filter(|entry| entry.owner == Some(composer));
        let mut names: Vec<String> = owned.map(|entry| entry.document.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// The composers that made configs.
    pub(crate) fn config_owners(&self) -> HashSet<ResourceId> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        inner.configs.values().filter_map(|entry| entry.owner).collect()
    }

    /// The kind's default config.
    pub fn default_config(&self, kind: &KindRef) -> Option<ConfigEntry> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        inner
            .configs
            .values()
            .find(|entry| entry.document.is_default && config_kind(&entry.document) == *kind)
            .cloned()
    }
}

/// The kind version a config belongs to.
pub(crate) fn config_kind(document: &ProviderConfigDocument) -> KindRef {
    KindRef::new(&document.kind, document.kind_version)
}

fn config_entry(state: &ProviderConfigState) -> Option<ConfigEntry> {
    let document = state.document.clone()?;
    let data = document
        .data
        .as_deref()
        .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok())
        .unwrap_or_default();
    Some(ConfigEntry {
        snapshot: ProviderConfigSnapshot {
            name: document.name.clone(),
            spec: Bytes::from(document.spec.to_string()),
            data: Bytes::from(data),
            version: state.sequence,
        },
        owner: state.owner,
        document,
    })
}
