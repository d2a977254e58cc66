//! The manifest of one kind version, as users write it.

pub use super::check::check;
pub use super::warnings::warnings;

use crate::ids::KindRef;
use crate::resource::{Reaction, Shape};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind manifest. Unknown fields are refused at parse with the nearest known name (see `document`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub kind: String,
    pub kind_version: u16,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    #[serde(default)]
    pub reactions: Vec<ReactionSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer_name: Option<String>,
    /// Which provider serves it; default: the kind's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(flatten)]
    pub knobs: Knobs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub immutable: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_immutable_change: Option<ImmutablePolicy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printer_columns: Vec<PrinterColumn>,
}

/// Policy that applies live and is never breaking. Absent = the default.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Knobs {
    /// Most live claims across the fleet; 0 = no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_inflight: Option<u32>,
    /// 0 = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_deadline_secs: Option<u32>,
    /// 0 = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync_interval_secs: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync_recomposes: Option<bool>,
    /// 0 = tear down now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphan_grace_secs: Option<u32>,
    /// 0 = never escalate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_transient_attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_policy: Option<DriftPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompose_on_children: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune_share_max: Option<f64>,
}

/// One reaction of a kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReactionSpec {
    pub name: String,
    pub trigger: Trigger,
    #[serde(default)]
    pub emits: Vec<Emit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
}

/// What fires a reaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    SpecChange,
    ChildrenSettled,
    DeleteRequested,
    Operation,
    Reactor,
    Resync,
}

/// A part of an outcome that the engine takes from a reaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Emit {
    Children,
    Edges,
    Configs,
    Status,
    Conditions,
    Finalizer,
    OperationOutput,
    SideEffect,
}

/// How observed and declared values compare. All pointers rooted (`/spec/tags`).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Compare {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
}

/// What becomes of drift.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftPolicy {
    Heal,
    Report,
}

/// What becomes of an edit to an immutable field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImmutablePolicy {
    Refuse,
    Replace,
}

/// A column of `converge get -o wide`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PrinterColumn {
    pub name: String,
    pub pointer: String,
}

impl Manifest {
    pub fn kind_ref(&self) -> KindRef {
        KindRef::new(&self.kind, self.kind_version)
    }

    /// The provider that serves it.
    pub fn provider(&self) -> &str {
        self.provider.as_deref().unwrap_or(&self.kind)
    }

    /// The reaction that answers `reaction`; for a teardown, the one that strips `finalizer`.
    pub fn reaction(&self, reaction: Reaction, finalizer: Option<&str>) -> Option<&ReactionSpec> {
        let emits_children = |r: &&ReactionSpec| r.emits.contains(&Emit::Children);
        let by_trigger = |trigger| self.reactions.iter().filter(move |r| r.trigger == trigger);
        match reaction {
            Reaction::Work => by_trigger(Trigger::SpecChange).find(|r| !emits_children(r)),
            Reaction::Compose => by_trigger(Trigger::SpecChange).find(emits_children),
            Reaction::Rollup => by_trigger(Trigger::ChildrenSettled).next(),
            Reaction::Observe => {
                by_trigger(Trigger::Resync).next().or_else(|| self.reaction(Reaction::Work, None))
            }
            Reaction::Teardown => by_trigger(Trigger::DeleteRequested)
                .find(|r| finalizer.is_none() || self.finalizer_of(r) == finalizer),
        }
    }

    /// What a resource's decisions need of this manifest.
    pub fn shape(&self) -> Shape {
        Shape {
            works: self.reaction(Reaction::Work, None).is_some(),
            composes: self.reaction(Reaction::Compose, None).is_some(),
            rolls_up: self.reaction(Reaction::Rollup, None).is_some(),
            observes: self.reactions.iter().any(|r| r.trigger == Trigger::Resync),
            finalizers: self
                .reactions
                .iter()
                .filter(|r| r.trigger == Trigger::DeleteRequested)
                .filter_map(|r| self.finalizer_of(r).map(str::to_owned))
                .collect(),
        }
    }

    fn finalizer_of<'a>(&'a self, reaction: &'a ReactionSpec) -> Option<&'a str> {
        reaction.finalizer.as_deref().or(self.finalizer_name.as_deref())
    }
}
