//! See the glossary: ProviderConfig.

mod aggregate;
mod commands;
mod errors;
mod events;

pub use aggregate::ProviderConfigState;
pub use commands::ProviderConfigCommand;
pub use errors::ProviderConfigError;
pub use events::ProviderConfigEvent;
