//! The list of live resources: what people filter, page, count and walk as trees.
//!
//! * [`fold`] computes row changes from events and stored rows, purely.
//! * [`write`] is the projection: loads, folds, stores.
//! * [`read`] answers pages, trees and counts, each from one snapshot with the position it shows.

mod fold;
mod identity;
mod path;
mod read;
mod row;
mod write;

pub use identity::{Identities, IdentityRow};
pub use read::{Answer, Filter, Key, ListRow, PhaseTally, Reader, TreeKey, TreeRow};
pub use write::ResourceList;
