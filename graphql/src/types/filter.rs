//! Filters of lists and watches.

use super::{Json, Phase, resource_id};
use crate::error::ApiError;
use async_graphql::{ID, InputObject};
use converge_projections::catch_up::resource_list::Filter;
use std::collections::BTreeMap;

/// Which resources. Everything given must hold.
#[derive(InputObject, Clone, Debug, Default)]
pub struct ResourceFilter {
    pub kind: Option<String>,
    /// In any of these phases.
    pub phase: Option<Vec<Phase>>,
    pub name_prefix: Option<String>,
    /// An object of strings: carries all of these labels with these values.
    pub labels: Option<Json>,
    /// Direct children of it.
    pub owner: Option<ID>,
    /// It, and everything below it.
    pub root: Option<ID>,
}

impl ResourceFilter {
    /// The filter as the list understands it.
    ///
    /// # Errors
    /// `BAD_REQUEST` for ids that are none and labels that are no object of strings.
    pub fn compile(filter: Option<Self>) -> Result<Filter, ApiError> {
        let Some(filter) = filter else { return Ok(Filter::default()) };
        let labels: BTreeMap<String, String> = match filter.labels {
            None | Some(Json(serde_json::Value::Null)) => BTreeMap::new(),
            Some(Json(labels)) => serde_json::from_value(labels)
                .map_err(|_| ApiError::bad_request("`labels` must be an object of strings"))?,
        };
        let mut phases: Vec<_> = filter.phase.unwrap_or_default().into_iter().map(Into::into).collect();
        // Each phase once: the list runs one range per phase, and a range twice would show rows twice.
        phases.sort_unstable();
        phases.dedup();
        Ok(Filter {
            kind: filter.kind,
            phases,
            // Every name begins with nothing: that is no condition.
            name_prefix: filter.name_prefix.filter(|prefix| !prefix.is_empty()),
            labels,
            owner: filter.owner.as_ref().map(resource_id).transpose()?,
            root: filter.root.as_ref().map(resource_id).transpose()?,
        })
    }
}
