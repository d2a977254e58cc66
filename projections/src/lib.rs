//! The log to read models: inline in the append call, or catching up behind it.

pub mod inline;
