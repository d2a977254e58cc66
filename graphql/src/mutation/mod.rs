//! What may be changed. The engine decides; this only carries.

mod act;
mod apply;
mod delete;
mod targets;

pub use apply::subject;

use async_graphql::MergedObject;

/// Changes.
#[derive(MergedObject, Default)]
pub struct Mutation(apply::ApplyMutation, delete::DeleteMutation, act::ActMutation);
