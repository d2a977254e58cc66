//! Read models to people: one GraphQL schema over HTTP and WebSocket, with health and metrics beside it.
//!
//! ```text
//!   http/ ─┐                    ┌─ query/        ─▶ store heads · resource list
//!   ws/   ─┴─▶ request ─▶ schema ┼─ mutation/     ─▶ Gateway (the engine decides)
//!                               └─ subscription/ ─▶ Feed (the log, replayed then live)
//! ```
//!
//! Nothing here decides anything about a resource: phases, conditions and reasons are read as stored, and
//! every change goes through [`converge_engine::gateway_api::Gateway`].

mod consistency;
mod directory;
mod error;
mod http;
mod limits;
mod loaders;
mod mutation;
mod query;
mod request;
mod schema;
mod state;
mod subscription;
mod types;
mod ws;

pub use error::{ApiError, Code};
pub use http::{Metrics, router, serve};
pub use limits::Limits;
pub use schema::sdl;
pub use state::ApiState;
