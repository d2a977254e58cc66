//! What a change is asked for: resources by name, or by what they have in common.

use crate::consistency::{heads_position, list_at_least};
use crate::error::ApiError;
use crate::limits::TARGETS_MAX;
use crate::state::ApiState;
use crate::types::ResourceFilter;
use async_graphql::InputObject;
use converge_domain::ResourceRef;

/// A resource by its name.
#[derive(InputObject, Clone, Debug)]
pub struct ResourceName {
    kind: String,
    name: String,
}

/// Which resources, each way of saying it adding to the other.
#[derive(InputObject, Clone, Debug, Default)]
pub struct Targets {
    /// By name.
    names: Option<Vec<ResourceName>>,
    /// All that the filter admits when the request comes. A filter that admits everything is refused.
    selector: Option<ResourceFilter>,
}

impl Targets {
    /// The names they come to, in order, at most [`TARGETS_MAX`]. A selector is answered by the list, from the end of the log as it
    /// is now on: whoever has just applied something finds it.
    ///
    /// # Errors
    /// `BAD_REQUEST` when nothing is named or too much is.
    pub async fn resolve(self, state: &ApiState) -> Result<Vec<ResourceRef>, ApiError> {
        let named = self.names.unwrap_or_default();
        let mut targets: Vec<ResourceRef> =
            named.into_iter().map(|target| ResourceRef::new(target.kind, target.name)).collect();
        if let Some(selector) = self.selector {
            let filter = ResourceFilter::compile(Some(selector))?;
            if filter.admits_all() {
                let message =
                    "`selector` selects everything; say by kind, name, label, owner or root what is meant";
                return Err(ApiError::bad_request(message));
            }
            let head = heads_position(state, None).await?;
            let limit = u32::try_from(TARGETS_MAX + 1).unwrap_or(u32::MAX);
            let page = list_at_least(state, Some(head), || state.list.page(&filter, None, limit)).await?;
            targets.extend(page.value.rows.iter().map(|row| row.state.id().reference()));
        }
        targets.sort_unstable();
        targets.dedup();
        if targets.len() > TARGETS_MAX {
            let message = format!(
                "more than {TARGETS_MAX} resources are meant; narrow it down and ask again for the rest"
            );
            return Err(ApiError::bad_request(message));
        }
        Ok(targets)
    }
}
