//! Global object identification.

use super::Resource;
use async_graphql::{ID, Interface};

/// Anything with an id of its own.
#[derive(Interface)]
#[graphql(field(name = "id", ty = "ID"))]
pub enum Node {
    Resource(Resource),
}
