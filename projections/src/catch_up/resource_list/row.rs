//! The stored shape of one listed resource.

use converge_domain::resource::ResourceState;
use converge_domain::{Position, ResourceId};
use std::sync::Arc;

/// One row, folded up to `updated_position`.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub state: Arc<ResourceState>,
    pub path: String,
    pub updated_position: Position,
}

impl Row {
    pub fn id(&self) -> ResourceId {
        self.state.id().id
    }
}
