//! The broker from outside: an engine without a database on one side, workers over real connections on the other.

mod engine;
mod garbage;
mod reconnect;
mod roundtrip;
mod sharing;
mod worker;
