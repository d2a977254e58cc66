//! A tree, depth-first, in pages.

use super::super::path::{end_of_subtree, is_cut};
use super::{Answer, FIRST_ID, ListRow, Page, RawRow, ReadError, Reader, cut, find_row};
use converge_domain::ResourceId;

/// A row's place in the depth-first order of its tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeKey {
    pub path: String,
    pub depth: i32,
    pub id: ResourceId,
}

/// One node of a tree.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeRow {
    /// Levels below the node that was asked for: 0 is that node itself.
    pub depth: i32,
    pub key: TreeKey,
    pub row: ListRow,
}

impl Reader {
    /// Up to `limit` nodes behind `after` of what `kind/name` heads: the node itself, then what it owns,
    /// siblings in (kind, name) order. None: no such resource.
    ///
    /// # Errors
    /// As [`Reader::page`].
    pub async fn tree(
        &self,
        kind: &str,
        name: &str,
        after: Option<&TreeKey>,
        limit: u32,
    ) -> Result<Answer<Option<Page<TreeRow, TreeKey>>>, ReadError> {
        let (mut tx, position) = self.snapshot().await?;
        let Some((top, root)) = find_row(&mut tx, kind, name).await? else {
            return Ok(Answer { position, value: None });
        };
        // The nil id sorts before the top's own, so that the first page starts with the top.
        let start = after.cloned().unwrap_or_else(|| TreeKey {
            path: top.path.clone(),
            depth: top.depth,
            id: FIRST_ID,
        });
        let mut rows = sqlx::query_as::<_, RawRow>(include_str!("../tree.sql"))
            .bind(root)
            .bind(start.path)
            .bind(start.depth)
            .bind(start.id.0)
            .bind(end_of_subtree(&top.path))
            .bind(is_cut(&top.path).then_some(top.id))
            .bind(i64::from(limit) + 1)
            .fetch_all(&mut *tx)
            .await?;
        drop(tx);
        let key = |raw: &RawRow| TreeKey { path: raw.path.clone(), depth: raw.depth, id: ResourceId(raw.id) };
        let next = cut(&mut rows, limit, key);
        let mut states = self.states(rows.iter()).await?;
        let live = rows.iter().filter_map(|raw| {
            let row = ListRow { state: states.remove(&raw.id)? };
            Some(TreeRow { depth: raw.depth - top.depth, key: key(raw), row })
        });
        Ok(Answer { position, value: Some(Page { rows: live.collect(), next }) })
    }
}
