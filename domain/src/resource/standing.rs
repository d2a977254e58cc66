//! What a node looks like to its owner.

use serde::{Deserialize, Serialize};

/// A node's standing in its owner's subtree; ordered from best to worst for the rollup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Set aside or dropped: not counted at all.
    LeftOut,
    /// Settled and healthy.
    #[default]
    AllReady,
    /// Settled, but failed, degraded or blocked.
    Impaired,
    /// Something is still to happen.
    Open,
}
