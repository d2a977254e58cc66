//! See the glossary: ReactorBinding.

mod aggregate;
mod commands;
mod errors;
mod events;

pub use aggregate::ReactorBindingState;
pub use commands::ReactorBindingCommand;
pub use errors::ReactorBindingError;
pub use events::ReactorBindingEvent;
