//! What the tests of this crate share.

pub mod database;
pub mod feed;
pub mod four_ways;
pub mod heads;
pub mod story;
