//! Streams tasks to workers and outcomes back.
//!
//! A broker stands between the engine, which owns claims and their fences, and worker processes, which own
//! nothing but a connection. It exists so that workers need no database, and so that a claim is made only when
//! a slot for it is free. Everything it remembers may be lost at any moment: the store's fence alone decides
//! which outcome counts, so a broker that dies costs time and never truth.
//!
//! The folders follow the flow of a task. [`state`] is the broker's memory as plain data behind one lock, with no
//! await inside; `claims` pulls work into free slots; `session` speaks with one worker; `record` hands outcomes
//! to the engine; `leases` ends what makes no progress; `watch` listens to the engine.

mod backoff;
mod claims;
mod composition;
mod config;
mod leases;
mod record;
mod serve;
mod session;
mod shared;
mod state;
mod watch;
mod wire;

pub use config::BrokerConfig;
pub use serve::{ServeError, serve};
