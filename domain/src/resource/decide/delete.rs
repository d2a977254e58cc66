//! Asking for the end.

use crate::ids::Timestamp;
use crate::resource::{ResourceError, ResourceEvent, ResourceState};

pub(super) fn request(state: &ResourceState, at: Timestamp) -> Result<Vec<ResourceEvent>, ResourceError> {
    if state.deletion.is_some() {
        return Ok(vec![]);
    }
    if state.deletion_protection {
        return Err(ResourceError::Protected);
    }
    Ok(vec![ResourceEvent::DeletionRequested { at }])
}
