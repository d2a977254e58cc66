//! Compositions.

use crate::consistency::{list_at_least, note};
use crate::error::ApiError;
use crate::limits::{PAGE_MAX, page_size, weight};
use crate::state::ApiState;
use crate::types::{Position, Resource, TreeNode, TreePage, decode_cursor, encode_cursor};
use async_graphql::connection::PageInfo;
use async_graphql::{Context, Object};
use converge_projections::catch_up::resource_list::TreeKey;

#[derive(Default)]
pub struct TreeQuery;

#[Object]
impl TreeQuery {
    /// A resource and everything below it, depth-first, in pages; empty when there is no such resource.
    #[graphql(complexity = "weight(first, 1000, child_complexity)")]
    async fn tree(
        &self,
        ctx: &Context<'_>,
        kind: String,
        name: String,
        #[graphql(default_with = "Some(1000)")] first: Option<i32>,
        after: Option<String>,
        min_position: Option<Position>,
    ) -> Result<TreePage, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        let limit = page_size(first, 1000, PAGE_MAX)?;
        let after = match after.as_deref() {
            Some(cursor) => {
                let (path, depth, id) = decode_cursor(cursor)?;
                Some(TreeKey { path, depth, id })
            }
            None => None,
        };
        let answer = list_at_least(state, min_position.map(Into::into), || {
            state.list.tree(&kind, &name, after.as_ref(), limit)
        })
        .await?;
        note(ctx, answer.position);
        let (rows, next) = answer.value.map_or_else(Default::default, |page| (page.rows, page.next));
        let page_info = PageInfo {
            has_previous_page: after.is_some(),
            has_next_page: next.is_some(),
            start_cursor: rows.first().map(|row| cursor(&row.key)),
            end_cursor: next.as_ref().or(rows.last().map(|row| &row.key)).map(cursor),
        };
        let nodes = rows
            .into_iter()
            .map(|node| TreeNode { depth: node.depth, resource: Resource::new(node.row.state) })
            .collect();
        Ok(TreePage { nodes, page_info, position: answer.position.into() })
    }
}

fn cursor(key: &TreeKey) -> String {
    encode_cursor(&(&key.path, key.depth, key.id))
}
