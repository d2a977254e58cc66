//! Write a worker in Rust.
//!
//! A worker hosts [`Provider`]s, one per kind. It dials a broker, receives tasks, and answers with outcomes; the
//! machinery here does everything else: credit, heartbeats, reconnection, redelivery and drain. A provider is only:
//!
//! ```no_run
//! use converge_sdk::{Outcome, Provider, Request, TaskError, async_trait, serve};
//! use serde_json::json;
//!
//! struct Bucket;
//!
//! #[async_trait]
//! impl Provider for Bucket {
//!     fn kind(&self) -> &str {
//!         "bucket"
//!     }
//!
//!     async fn work(&self, request: Request) -> Result<Outcome, TaskError> {
//!         // Idempotent: the same key comes again after every crash.
//!         let id = format!("bucket-{}", request.idempotency_key);
//!         Ok(Outcome::new().status(json!({ "bucket_id": id })))
//!     }
//! }
//!
//! # async fn example() -> Result<(), converge_sdk::WorkerError> {
//! serve([Bucket]).await
//! # }
//! ```
//!
//! [`serve`] reads its settings from the environment and returns on SIGTERM after a drain; [`Worker::builder`] is
//! for programs and tests that bring their own.

mod backoff;
mod composition;
mod condition;
mod config;
mod error;
mod health;
mod input;
mod items;
mod json;
mod logging;
mod outcome;
mod provider;
mod request;
mod serve;
mod settings;
mod tls;
mod worker;

pub use async_trait::async_trait;
pub use composition::{Child, Composition, Edge, FieldFlow, Reference};
pub use condition::Condition;
pub use config::{ConfigUpdate, ProviderConfig, effective_bundle, effective_config};
pub use error::{TaskError, terminal};
pub use input::{Input, Node};
pub use items::Items;
pub use json::Json;
pub use logging::init_logging;
pub use outcome::Outcome;
pub use provider::{Provider, Readiness};
pub use request::{Reaction, Request};
pub use serve::{serve, serve_until};
pub use settings::{Settings, SettingsError};
pub use tls::TlsFiles;
pub use worker::{Worker, WorkerBuilder, WorkerError};
