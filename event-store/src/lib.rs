//! The log: the only crate that appends.

pub mod log;
pub mod rows;
pub mod store;

pub use log::*;
pub use rows::*;
pub use store::*;
