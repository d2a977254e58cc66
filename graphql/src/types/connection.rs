//! Relay connections over keyset pages. A cursor is a place in an order, not a row: it stays good when its
//! row is gone.

use super::{Position, Resource};
use crate::error::ApiError;
use async_graphql::SimpleObject;
use async_graphql::connection::PageInfo;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use converge_projections::catch_up::resource_list::{Answer, Key, ListRow};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A page of resources in (kind, name) order.
#[derive(SimpleObject)]
pub struct ResourceConnection {
    pub edges: Vec<ResourceEdge>,
    /// The same resources, for clients that need no cursors.
    pub nodes: Vec<Resource>,
    pub page_info: PageInfo,
    /// The page shows the log up to here.
    pub position: Position,
}

/// One resource of a page.
#[derive(SimpleObject)]
pub struct ResourceEdge {
    pub cursor: String,
    pub node: Resource,
}

impl ResourceConnection {
    /// The page of `limit` in an answer that was read with one row more.
    pub fn new(answer: Answer<Vec<ListRow>>, limit: u32, after: Option<&Key>) -> Self {
        let mut rows = answer.value;
        let limit = limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let cursors: Vec<String> = rows.iter().map(|row| row_cursor(&row.key())).collect();
        let page_info = PageInfo {
            has_previous_page: after.is_some(),
            has_next_page: more,
            start_cursor: cursors.first().cloned(),
            end_cursor: cursors.last().cloned(),
        };
        let nodes: Vec<Resource> = rows.into_iter().map(|row| Resource::new(row.state)).collect();
        let edges = cursors
            .into_iter()
            .zip(&nodes)
            .map(|(cursor, node)| ResourceEdge { cursor, node: node.clone() })
            .collect();
        Self { edges, nodes, page_info, position: answer.position.into() }
    }
}

fn row_cursor(key: &Key) -> String {
    encode_cursor(&(&key.kind, &key.name, key.id))
}

/// An opaque cursor. Its parts are the order's own columns.
pub fn encode_cursor(parts: &impl Serialize) -> String {
    // Strings, numbers and uuids always serialise.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(parts).unwrap_or_default())
}

/// The parts of a cursor made by [`encode_cursor`].
///
/// # Errors
/// `BAD_REQUEST` for a cursor of another list, or none of ours.
pub fn decode_cursor<T: DeserializeOwned>(cursor: &str) -> Result<T, ApiError> {
    let refuse = || ApiError::bad_request("`after` is not a cursor of this list");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refuse())?;
    serde_json::from_slice(&bytes).map_err(|_| refuse())
}

/// The list key in a cursor.
///
/// # Errors
/// As [`decode_cursor`].
pub fn decode_key(cursor: Option<&str>) -> Result<Option<Key>, ApiError> {
    cursor.map(|cursor| decode_cursor(cursor).map(|(kind, name, id)| Key { kind, name, id })).transpose()
}
