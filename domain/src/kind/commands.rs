//! What may be asked of a kind version.

use super::Manifest;
use crate::ids::Timestamp;

/// A command to one kind version.
#[derive(Clone, Debug)]
pub enum KindCommand {
    /// Publishes the manifest: creates the version, or changes it where the change is not breaking.
    Publish { manifest: Box<Manifest>, at: Timestamp },
    /// Removes the version; whoever asks has made sure that no resource needs it.
    Delete { at: Timestamp },
}
