//! A client of the GraphQL API, over HTTP for questions and WebSocket for what follows.
//!
//! The operations are `.graphql` files beside this module, so that they read as what they are and can be
//! pasted into any GraphQL tool; `model` holds their answers.

mod error;
mod http;
pub mod model;
pub mod operations;
mod subscription;

pub use error::ClientError;
pub use http::Client;
pub use operations::Operation;
pub use subscription::{Follow, Followed, Positioned};
