//! What the whole-system tests are made of: real processes on real databases, and judges of the log they leave.
//!
//! The tests of the other crates prove rules where they are made. Here nothing is replaced: the programs are the
//! ones that are shipped, started, killed and started again as an operator or a power cut would, and what is asserted is
//! read from the log. A condition is awaited, never a time, so a loaded machine only makes a test slower.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "test support: a broken premise has to end the test where it broke"
)]

pub mod api;
pub mod bom;
pub mod history;
pub mod invariants;
pub mod ledger;
pub mod process;
pub mod programs;
pub mod replay;
pub mod site;
