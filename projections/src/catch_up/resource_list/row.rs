//! The stored shape of one listed resource, as far as a fold needs it.

use super::basis::Basis;
use converge_domain::ResourceId;
use converge_domain::resource::Phase;

/// What a batch folds over.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub id: ResourceId,
    pub kind: String,
    pub name: String,
    /// None: it is top-level.
    pub root: Option<ResourceId>,
    pub phase: Phase,
    pub basis: Basis,
}
