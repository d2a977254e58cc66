//! What may be changed. The engine decides; this only carries.

mod apply;
mod delete;

pub use apply::subject;

use async_graphql::MergedObject;

/// Changes.
#[derive(MergedObject, Default)]
pub struct Mutation(apply::ApplyMutation, delete::DeleteMutation);
