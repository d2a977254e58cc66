//! Inline projections: the rows that commands and claims need at once, written in the append call itself.
//!
//! Each is a pure function of an aggregate's state before and after a batch, and the state is a pure function
//! of the log; so a replay of the log gives the same rows.

mod rows;

pub use rows::StateProjector;
