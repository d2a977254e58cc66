//! What may be asked.

mod events;
mod graph;
mod kinds;
mod provider_configs;
mod resource;
mod resources;
mod summary;
mod tree;

use async_graphql::MergedObject;

/// Reads.
#[derive(MergedObject, Default)]
pub struct Query(
    resource::ResourceQuery,
    resources::ResourcesQuery,
    tree::TreeQuery,
    graph::GraphQuery,
    kinds::KindsQuery,
    provider_configs::ProviderConfigsQuery,
    events::EventsQuery,
    summary::SummaryQuery,
);
