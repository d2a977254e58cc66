//! The log: the only crate that appends.
//!
//! Commands go in at [`Log::execute`], events come out of [`Tail::follow`]; between them stands a [`Store`],
//! which is PostgreSQL in the product ([`postgres::PgStore`]) and a struct in tests ([`memory::MemoryStore`]).
//!
//! Invariants:
//! * positions are dense and in commit order (argued in `migrations/0005_append.sql`);
//! * a batch is written by one server call, so no lock outlives a round trip;
//! * a failure is *known failed* or *outcome unknown*, and an unknown outcome is resolved before anything else
//!   happens with its batch.

pub mod clock;
pub mod codec;
pub mod codes;
pub mod cqrs_store;
pub mod digest;
pub mod log;
pub mod memory;
pub mod postgres;
pub mod rows;
pub mod store;
pub mod tail;

pub use clock::{Clock, DatabaseClock};
pub use codec::{Identity, PayloadCodec};
pub use cqrs_store::{CqrsStore, Wrapped};
pub use log::*;
pub use memory::MemoryStore;
pub use postgres::{PgOptions, PgStore, migrate};
pub use rows::*;
pub use store::*;
pub use tail::{Follower, Tail};
