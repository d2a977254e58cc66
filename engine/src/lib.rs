//! The loop: read models and time to commands.
//!
//! Everything here is level-triggered. An event wakes a resource; waking reads what is around it as it is now
//! and issues a command that carries guards for what was read. A lost or doubled wake-up costs a read, never
//! a wrong state, and a starting process wakes whatever is not settled.

mod compose;
pub mod dispatch;
mod dispatching;
mod engine;
mod evaluate;
mod gateway;
pub mod gateway_api;
mod membership;
mod names;
mod registry;
mod resources;
mod served;
mod teardown;
mod timers;
mod wake;
mod why;

pub use engine::{Engine, EngineConfig, EngineParts};
pub use registry::{KindEntry, Registry};
