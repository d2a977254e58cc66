//! Pure decisions: command → aggregate → event.
//!
//! This crate reads no clock, no socket and no database; it draws no random number. Time and jitter come
//! in with commands, facts about other aggregates come in with evaluations and go out as [`guard::Guard`]s.

pub mod any;
pub mod backoff;
pub mod composition;
pub mod document;
pub mod guard;
pub mod ids;
pub mod json;
pub mod kind;
pub mod provider_config;
pub mod reactor_binding;
pub mod resource;
pub mod schema;
pub mod value_flow;
mod violation;

pub use any::{Address, AggregateType, AnyCommand, AnyEvent, AnyState, DecodeError, DomainError};
pub use ids::*;
pub use violation::Violation;
