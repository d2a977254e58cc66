//! The loop: read models and time to commands.

pub mod dispatch;
pub mod gateway_api;
