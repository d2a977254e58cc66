//! What may be asked of it.

use crate::document::ReactorBindingDocument;
use crate::ids::Timestamp;

/// A command.
#[derive(Clone, Debug)]
pub enum ReactorBindingCommand {
    /// Creates or changes it.
    Declare { document: Box<ReactorBindingDocument>, at: Timestamp },
    /// Removes it.
    Delete { at: Timestamp },
}
