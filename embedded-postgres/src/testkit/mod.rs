//! A database of its own for every test, at the price of copying a few files.
//!
//! One throw-away server serves a whole test run: the runner starts it and names it in [`SERVER_ENV`]; without a
//! runner every test process starts one on first use. Migrations run once per server, into a template; each
//! test clones it ([`TestDatabase::from_template`]).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use embedded_postgres::testkit::TestDatabase;
//!
//! let database = TestDatabase::from_template("log", |url| async move {
//!     // run the migrations on `url`, and close what was opened
//!     drop(url);
//!     Ok::<(), sqlx::Error>(())
//! })
//! .await;
//! let pool = database.pool().await;
//! sqlx::query("SELECT 1").execute(&pool).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything here panics instead of returning errors: a test that has no database has nothing to decide.

mod database;
mod janitor;
mod server;
mod template;

pub use database::TestDatabase;
pub use server::{SERVER_ENV, start_server};
