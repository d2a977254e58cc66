//! Trees, depth-first.

use super::{Position, Resource};
use async_graphql::SimpleObject;
use async_graphql::connection::PageInfo;

/// A page of a tree: an owner before what it owns, siblings in (kind, name) order.
#[derive(SimpleObject)]
pub struct TreePage {
    pub nodes: Vec<TreeNode>,
    pub page_info: PageInfo,
    pub position: Position,
}

/// One node of a tree.
#[derive(SimpleObject)]
pub struct TreeNode {
    /// Levels below the resource that was asked for.
    pub depth: i32,
    pub resource: Resource,
}
