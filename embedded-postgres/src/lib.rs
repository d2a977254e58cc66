//! A PostgreSQL server that the program starts itself, so that a demo, a development loop and a test run need
//! nothing but PostgreSQL's binaries on the machine: no service, no container, no account, no password.
//!
//! What this crate promises:
//!
//! * It uses binaries that are installed ([`Binaries::find`]) and never downloads any; when there are none the
//!   error carries the exact install command for this system.
//! * The server listens on a Unix socket alone, inside a directory that only its own user and root can enter.
//! * It never outlives the program, however the program ends ([`watchdog`]), and a data directory whose server
//!   or program was killed with SIGKILL starts again.
//! * A server it did not start is used but never stopped, signalled or reconfigured.
//! * A [`Durability::Durable`] server runs with `fsync` on. Only a throw-away test server ever runs without.
//!
//! It works as an ordinary user and as root: PostgreSQL refuses to run as root, so the server then runs as an
//! unprivileged user that exists already ([`ServerUser::choose`]).

mod binaries;
mod directory;
mod error;
mod install_hint;
mod postmaster;
mod server;
mod settings;
pub mod testkit;
mod url;
mod user;
mod watchdog;

pub use binaries::{BINARIES_ENV, Binaries};
pub use directory::default_data_dir;
pub use error::EmbeddedError;
pub use server::{EmbeddedPostgres, Options};
pub use settings::Durability;
pub use user::ServerUser;
