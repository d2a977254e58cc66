//! The demo: a landing zone of accounts, networks, gateways and routes, as a worker.
//!
//! It exists to show the engine at work on something that looks like a platform team's day: one composer expands a
//! bill of materials into thousands of resources, leaf providers make them in a pretended cloud, and a rollup answers
//! the only question its users have: which team is ready, and under which ids. The pretended cloud can be slow, can
//! fail, and can be audited: see [`Knobs`].

mod bom;
mod cloud;
mod composer;
mod effects;
mod knobs;
mod leaf;

pub use composer::ClassicBom;
pub use effects::Effects;
pub use knobs::Knobs;
pub use leaf::{Leaf, LeafKind};

use cloud::Cloud;
use converge_sdk::Provider;
use std::sync::Arc;

/// Every provider of the demo, sharing one pretended cloud.
///
/// # Errors
/// When the ledger of effects cannot be opened.
pub fn providers(knobs: &Knobs) -> anyhow::Result<Vec<Arc<dyn Provider>>> {
    let cloud = Arc::new(Cloud::open(knobs)?);
    let mut providers: Vec<Arc<dyn Provider>> = vec![Arc::new(ClassicBom)];
    for kind in LeafKind::ALL {
        providers.push(Arc::new(Leaf::new(kind, Arc::clone(&cloud))));
    }
    Ok(providers)
}
