//! JSON Schema (draft 2020-12) as the gateway applies it: every fault at once, and flows still to come allowed for.

mod compile;
mod integers;
mod messages;
mod pending;

pub use compile::{CompiledSchema, DEPTH_MAX, NODES_MAX, SchemaError, VIOLATIONS_MAX};

pub use crate::violation::Violation;

#[cfg(test)]
mod tests;
