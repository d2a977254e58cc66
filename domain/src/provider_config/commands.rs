//! What may be asked of it.

use crate::document::ProviderConfigDocument;
use crate::ids::{ResourceId, Timestamp};

/// A command.
#[derive(Clone, Debug)]
pub enum ProviderConfigCommand {
    /// Creates or changes it. `owner`: the composer that does; None: a user.
    Declare { document: Box<ProviderConfigDocument>, owner: Option<ResourceId>, at: Timestamp },
    /// Removes it, on behalf of a composer or of a user.
    Delete { owner: Option<ResourceId>, at: Timestamp },
}
