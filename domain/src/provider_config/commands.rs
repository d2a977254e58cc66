//! What may be asked of it.

use crate::document::ProviderConfigDocument;
use crate::ids::Timestamp;

/// A command.
#[derive(Clone, Debug)]
pub enum ProviderConfigCommand {
    /// Creates or changes it.
    Declare { document: Box<ProviderConfigDocument>, at: Timestamp },
    /// Removes it.
    Delete { at: Timestamp },
}
