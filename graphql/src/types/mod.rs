//! The types of the schema: thin views of what is stored.

mod condition;
mod connection;
mod event;
mod filter;
mod flow;
mod kind;
mod node;
mod provider_config;
mod resource;
mod scalars;
mod summary;
mod tree;

pub use condition::Condition;
pub use connection::{ResourceConnection, decode_cursor, decode_key, encode_cursor};
pub use event::{Event, EventFilter, EventPage};
pub use filter::ResourceFilter;
pub use flow::Edge;
pub use kind::Kind;
pub use node::Node;
pub use provider_config::ProviderConfig;
pub use resource::{Phase, Resource};
pub use scalars::{DateTime, Json, Position, resource_id};
pub use summary::Summary;
pub use tree::{TreeNode, TreePage};
