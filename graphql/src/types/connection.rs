//! Relay connections over keyset pages. A cursor is a place in an order, not a row: it stays good when its
//! row is gone.

use super::{Position, Resource};
use crate::error::ApiError;
use async_graphql::SimpleObject;
use async_graphql::connection::PageInfo;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use converge_projections::catch_up::resource_list::{Answer, Key, ListRow, Page};
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
    /// A page that was read behind `after`.
    pub fn new(answer: Answer<Page<ListRow, Key>>, after: Option<&Key>) -> Self {
        let Page { rows, next } = answer.value;
        let cursors: Vec<String> = rows.iter().map(|row| row_cursor(&row.key())).collect();
        let page_info = PageInfo {
            has_previous_page: after.is_some(),
            has_next_page: next.is_some(),
            start_cursor: cursors.first().cloned(),
            // Where the rest starts: not at the last row shown, if rows behind it were read and left out.
            end_cursor: next.as_ref().map(row_cursor).or_else(|| cursors.last().cloned()),
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
