//! The program as scripts see it: what it asks, what it prints, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test ends at its first surprise, its helpers included")]

mod act;
mod apply;
mod delete;
mod events;
mod exits;
mod fake;
mod migrate;
mod overview;
mod server;
mod show;
mod things;
mod wait;
