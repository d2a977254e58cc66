//! The commands, one file each.

pub mod act;
pub mod apply;
pub mod completion;
pub mod delete;
pub mod demo;
pub mod describe;
pub mod dev;
pub mod events;
pub mod get;
pub mod graph;
pub mod list;
pub mod migrate;
pub mod serve;
pub mod summary;
pub mod tree;
pub mod wait;
pub mod worker;
