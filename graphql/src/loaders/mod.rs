//! Many fields, one query: what a list's rows ask for one by one is loaded together.

mod by_id;
mod children;
mod provenance;
mod recent_events;

pub use by_id::ById;
pub use children::{Children, ChildrenKey};
pub use provenance::{Provenance, ProvenanceKey};
pub use recent_events::{RecentEvents, RecentEventsKey};

use crate::state::ApiState;
use async_graphql::dataloader::DataLoader;

pub type ByIdLoader = DataLoader<ById>;
pub type ChildrenLoader = DataLoader<Children>;
pub type ProvenanceLoader = DataLoader<Provenance>;
pub type RecentEventsLoader = DataLoader<RecentEvents>;

/// Loaders live as long as the schema and cache nothing: they only gather keys asked for at the same time.
pub fn by_id(state: &ApiState) -> ByIdLoader {
    DataLoader::new(ById { store: state.store.clone() }, tokio::spawn)
}

pub fn children(state: &ApiState) -> ChildrenLoader {
    DataLoader::new(Children { list: state.list.clone() }, tokio::spawn)
}

pub fn provenance(state: &ApiState) -> ProvenanceLoader {
    DataLoader::new(Provenance { store: state.store.clone() }, tokio::spawn)
}

pub fn recent_events(state: &ApiState) -> RecentEventsLoader {
    DataLoader::new(RecentEvents { store: state.store.clone() }, tokio::spawn)
}
