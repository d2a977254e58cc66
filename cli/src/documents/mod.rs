//! Documents: what users write, read from files, folders and stdin, and made ready to be sent.
//!
//! The server judges documents; this side only has to bring them over unharmed. JSON goes as the very
//! text of the file. YAML is converted with nothing guessed: what JSON cannot say is refused here.

mod json;
mod load;
mod split;
mod strict;
mod yaml;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use load::{from_text, load};
pub use split::split;

/// One document as it will be sent.
#[derive(Debug)]
pub struct Document {
    /// JSON text.
    pub json: Box<RawValue>,
    /// What can be told of it without judging it.
    pub head: Head,
    /// `file.yaml#2`, for messages.
    pub origin: String,
}

/// The fields that say what a document is. Wrongly typed ones read as absent: the server will say so better.
#[derive(Clone, Default, PartialEq, Eq, Debug, Deserialize)]
#[serde(default)]
pub struct Head {
    #[serde(rename = "type", deserialize_with = "text")]
    pub document_type: Option<String>,
    #[serde(deserialize_with = "text")]
    pub kind: Option<String>,
    #[serde(deserialize_with = "text")]
    pub name: Option<String>,
}

impl Head {
    /// The document's type, after the default for documents without one.
    pub fn type_or<'a>(&'a self, default: Option<&'a str>) -> Option<&'a str> {
        self.document_type.as_deref().or(default)
    }
}

fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Field {
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Field::deserialize(deserializer)? {
        Field::Text(text) => Some(text),
        Field::Other(_) => None,
    })
}

/// Why documents cannot be read. Always the user's to mend.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("{origin}: {reason}")]
    Unreadable { origin: String, reason: String },
    #[error("{origin}: {reason}")]
    Malformed { origin: String, reason: String },
    #[error("{0}: no documents found")]
    Empty(String),
    #[error("{origin}: larger than {} MiB", load::INPUT_BYTES_MAX >> 20)]
    TooLarge { origin: String },
    #[error("{origin}: one document of {} MiB; the limit is {} MiB", bytes >> 20, split::REQUEST_BYTES_MAX >> 20)]
    DocumentTooLarge { origin: String, bytes: usize },
}

impl From<DocumentError> for crate::exit::Failure {
    fn from(error: DocumentError) -> Self {
        Self::usage(error)
    }
}
