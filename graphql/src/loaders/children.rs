//! Children of many owners.

use crate::error::ApiError;
use async_graphql::dataloader::Loader;
use converge_domain::ResourceId;
use converge_projections::catch_up::resource_list::{Answer, Key, ListRow, Page, Reader};
use std::collections::HashMap;

/// A page of one owner's children.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ChildrenKey {
    pub owner: ResourceId,
    pub after: Option<Key>,
    pub limit: u32,
}

pub struct Children {
    pub(super) list: Reader,
}

impl Loader<ChildrenKey> for Children {
    type Value = Answer<Page<ListRow, Key>>;
    type Error = ApiError;

    async fn load(&self, keys: &[ChildrenKey]) -> Result<HashMap<ChildrenKey, Self::Value>, ApiError> {
        tracing::trace!(keys = keys.len(), "loading children");
        // Rows of one list ask with the same arguments: one query for them all. Different arguments come
        // from different fields, of which a query has few.
        let mut groups: HashMap<(Option<&Key>, u32), Vec<ResourceId>> = HashMap::new();
        for key in keys {
            groups.entry((key.after.as_ref(), key.limit)).or_default().push(key.owner);
        }
        let mut loaded = HashMap::with_capacity(keys.len());
        for ((after, limit), owners) in groups {
            let mut answer = self.list.children(&owners, after, limit).await?;
            for owner in owners {
                let key = ChildrenKey { owner, after: after.cloned(), limit };
                let none = || Page { rows: Vec::new(), next: None };
                let value = answer.value.remove(&owner).unwrap_or_else(none);
                loaded.insert(key, Answer { position: answer.position, value });
            }
        }
        Ok(loaded)
    }
}
