//! A task as its handler sees it.

use crate::config::{self, ProviderConfig, effective_bundle, effective_config};
use crate::error::TaskError;
use crate::input::Input;
use crate::json::Json;
use bytes::Bytes;
use converge_protocol::v1;
use serde_json::Value;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What is asked of the provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reaction {
    /// Make the world match the spec.
    Work,
    /// Expand into children.
    Compose,
    /// Summarise the settled subtree.
    Rollup,
    /// Undo.
    Teardown,
    /// Look, and say what differs.
    Observe,
    /// Do what an operator asked for.
    Operate,
    /// Carry out a side effect.
    React,
}

impl Reaction {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Compose => "compose",
            Self::Rollup => "rollup",
            Self::Teardown => "teardown",
            Self::Observe => "observe",
            Self::Operate => "operate",
            Self::React => "react",
        }
    }
}

impl FromStr for Reaction {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        [Self::Work, Self::Compose, Self::Rollup, Self::Teardown, Self::Observe, Self::Operate, Self::React]
            .into_iter()
            .find(|reaction| reaction.as_str() == word)
            .ok_or_else(|| format!("this worker does not know the reaction `{word}`"))
    }
}

/// See the module. Self-contained: a handler needs nothing else from the engine.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub reaction: Reaction,
    /// What fired it: `specChange`, `childrenSettled`, `deleteRequested`, …
    pub trigger: String,
    /// The reaction's name in the manifest.
    pub reaction_name: String,
    /// The resource's uuid: the same for its whole life.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its kind's version.
    pub kind_version: u32,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Which edition of the spec this is.
    pub generation: u64,
    /// From 1; counts tries of the same decision.
    pub attempt: u32,
    /// The same for every retry and redelivery of one decision, new for the next: hand it to the external system.
    pub idempotency_key: String,
    /// When the engine stops waiting; None: never.
    pub deadline: Option<Instant>,
    /// The spec, with flowed values filled in.
    pub spec: Json,
    /// The last visible status.
    pub status: Option<Json>,
    /// The kind's default config, if it has one.
    pub default_config: Option<ProviderConfig>,
    /// The resource's own config, if it names one.
    pub config_override: Option<ProviderConfig>,
    /// A rollup's totals of the subtree.
    pub summary: Option<Json>,
    /// Observed children (compose) or descendants (rollup).
    pub input: Input,
    /// A teardown's finalizer.
    pub finalizer: Option<String>,
    /// Parts of an outcome that will be taken.
    pub emits: Vec<String>,
    /// The manifest's provider name.
    pub provider: String,
    /// Say what would be done; do nothing.
    pub dry_run: bool,
    /// Fires when nobody waits for the outcome any more.
    pub cancelled: CancellationToken,
}

impl Request {
    /// Default ⊕ override, merged key by key.
    ///
    /// # Errors
    /// When one of the two is not JSON.
    pub fn effective_config(&self) -> Result<Value, TaskError> {
        let value = |config: &Option<ProviderConfig>| config.as_ref().map(|c| c.spec.value()).transpose();
        Ok(effective_config(value(&self.default_config)?.as_ref(), value(&self.config_override)?.as_ref()))
    }

    /// The override's bundle, else the default's.
    pub fn effective_bundle(&self) -> Option<Bytes> {
        let data = |config: &Option<ProviderConfig>| config.as_ref().map(|config| config.data.clone());
        effective_bundle(data(&self.default_config).as_ref(), data(&self.config_override).as_ref())
    }

    /// What is left of the deadline; None: there is none.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// A request with nothing but a kind, a name and a spec, for tests of providers.
    pub fn example(reaction: Reaction, kind: &str, name: &str, spec: Value) -> Self {
        Self {
            reaction,
            trigger: "specChange".to_owned(),
            reaction_name: reaction.as_str().to_owned(),
            id: "00000000-0000-4000-8000-000000000001".to_owned(),
            kind: kind.to_owned(),
            kind_version: 1,
            name: name.to_owned(),
            labels: BTreeMap::new(),
            generation: 1,
            attempt: 1,
            idempotency_key: format!("example/{}/{kind}/{name}", reaction.as_str()),
            deadline: None,
            spec: spec.into(),
            status: None,
            default_config: None,
            config_override: None,
            summary: None,
            input: Input::default(),
            finalizer: None,
            emits: Vec::new(),
            provider: kind.to_owned(),
            dry_run: false,
            cancelled: CancellationToken::new(),
        }
    }

    pub(crate) fn from_wire(
        task: v1::Task,
        default_config: Option<ProviderConfig>,
        input: Input,
        cancelled: CancellationToken,
    ) -> Result<Self, TaskError> {
        let present = |json: Bytes| (!json.is_empty()).then_some(Json(json));
        Ok(Self {
            reaction: task.reaction.parse().map_err(TaskError::transient)?,
            trigger: task.trigger,
            reaction_name: task.reaction_name,
            id: task.fence.map(|fence| fence.resource_id).unwrap_or_default(),
            kind: task.kind,
            kind_version: task.kind_version,
            name: task.name,
            labels: task.labels.into_iter().collect(),
            generation: task.generation,
            attempt: task.attempt,
            idempotency_key: task.idempotency_key,
            deadline: (task.deadline_ms > 0)
                .then(|| Instant::now() + Duration::from_millis(task.deadline_ms)),
            spec: present(task.spec).unwrap_or_else(|| Json(Bytes::from_static(b"{}"))),
            status: present(task.status),
            default_config,
            config_override: task.config_override.map(config::from_wire),
            summary: present(task.summary),
            input,
            finalizer: (!task.finalizer.is_empty()).then_some(task.finalizer),
            emits: task.emits,
            provider: task.provider,
            dry_run: task.dry_run,
            cancelled,
        })
    }
}
