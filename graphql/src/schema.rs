//! The schema with its limits, and its text.

use crate::limits::{COMPLEXITY_MAX, DEPTH_MAX};
use crate::loaders;
use crate::mutation::Mutation;
use crate::query::Query;
use crate::state::ApiState;
use crate::subscription::Subscription;
use async_graphql::{Schema, SchemaBuilder};

/// The API as async-graphql executes it.
pub type ApiSchema = Schema<Query, Mutation, Subscription>;

fn builder() -> SchemaBuilder<Query, Mutation, Subscription> {
    Schema::build(Query::default(), Mutation::default(), Subscription::default())
        .register_output_type::<crate::types::Node>()
        .limit_depth(DEPTH_MAX)
        .limit_complexity(COMPLEXITY_MAX)
}

/// The schema over `state`.
pub fn build(state: ApiState) -> ApiSchema {
    builder()
        .data(loaders::by_id(&state))
        .data(loaders::children(&state))
        .data(loaders::provenance(&state))
        .data(loaders::recent_events(&state))
        .data(state)
        .finish()
}

/// The schema's text, as committed in `schema.graphql`.
pub fn sdl() -> String {
    builder().finish().sdl()
}
