//! The broker from outside: an engine without a database on one side, workers over real connections on the other.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod engine;
mod garbage;
mod reconnect;
mod roundtrip;
mod sharing;
mod worker;
