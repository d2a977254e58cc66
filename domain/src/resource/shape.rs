//! The part of a kind's manifest that a resource's own decisions need.

use serde::{Deserialize, Serialize};

/// Which reactions the resource's kind has, pinned in its stream when it is declared, so that a replay
/// decides as the live system did whatever became of the manifest.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Shape {
    /// A specChange reaction that works (does not emit children).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub works: bool,
    /// A specChange reaction that emits children.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub composes: bool,
    /// A childrenSettled reaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolls_up: bool,
    /// A resync reaction; without one the reaction that works is asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observes: bool,
    /// Finalizers of the deleteRequested reactions, in manifest order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
}

/// What a task asks of a provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// Make the world match the spec (specChange, emits status).
    Work,
    /// Expand into children (specChange, emits children).
    Compose,
    /// Summarise the settled subtree (childrenSettled).
    Rollup,
    /// Undo (deleteRequested).
    Teardown,
    /// Look at the world again (resync, else the reaction that works).
    Observe,
}

impl Reaction {
    /// The trigger word of the manifest that this reaction answers.
    pub const fn trigger(self) -> &'static str {
        match self {
            Self::Work | Self::Compose => "specChange",
            Self::Rollup => "childrenSettled",
            Self::Teardown => "deleteRequested",
            Self::Observe => "resync",
        }
    }
}
