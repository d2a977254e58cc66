//! The log to read models.
//!
//! Two ways lead from an event to a row. *Inline* rows are written by the append call itself, because the
//! next command or claim needs them at once. Everything a person looks at is *caught up* afterwards: it may
//! lag, but never diverge, and it can be thrown away and built anew from position 0.

pub mod catch_up;
pub mod inline;
