//! The list of live resources: what people filter, page, count and walk as trees.
//!
//! * [`fold`] computes row changes from events and stored rows, purely; [`basis`] is what a row remembers for it.
//! * [`write`] is the projection: loads, folds, stores.
//! * [`read`] answers pages, trees and counts with the position they show; states come from the heads.

mod basis;
mod fold;
mod identity;
mod path;
mod read;
mod row;
mod write;

pub use identity::{Identities, IdentityRow};
pub use read::{Answer, Filter, Key, ListRow, Page, PhaseTally, ReadError, Reader, TreeKey, TreeRow};
pub use write::ResourceList;
