//! What may be watched. From a given position on: first the past, then the present, without a seam.

mod events;
mod folds;
mod follow;
mod resource_changed;
mod shared;

pub use shared::Shared;

use async_graphql::MergedSubscription;

/// Watches.
#[derive(MergedSubscription, Default)]
pub struct Subscription(resource_changed::ResourceChangedSubscription, events::EventsSubscription);
