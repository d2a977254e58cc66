//! The program as scripts see it: what it asks, what it prints, and how it ends.

mod apply;
mod delete;
mod events;
mod exits;
mod fake;
mod migrate;
mod show;
mod things;
mod wait;
