//! The large part of a task: observed children for a composer, the settled subtree for a rollup.
//!
//! It arrives in pages while the handler runs, and the broker sends further ones only as these are consumed, so
//! a rollup over a million nodes needs memory for a few pages.

use crate::error::TaskError;
use crate::json::Json;
use crate::worker::PageTaken;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// A page as it came.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) index: u32,
    pub(crate) part: String,
    pub(crate) items: Bytes,
    pub(crate) last: bool,
}

/// A node of the observed children or of the subtree.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Node {
    /// Its uuid.
    #[serde(default)]
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its kind's version.
    #[serde(default)]
    pub kind_version: u32,
    /// Its name.
    pub name: String,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// `Ready`, `Failed`, …
    #[serde(default)]
    pub phase: String,
    /// Its visible status.
    #[serde(default)]
    pub status: Option<serde_json::Value>,
}

/// The pages of one task, read once and in order.
#[derive(Debug, Default)]
pub struct Input {
    source: Option<Source>,
}

#[derive(Debug)]
struct Source {
    pages: mpsc::Receiver<Page>,
    taken: PageTaken,
}

impl Input {
    pub(crate) fn streamed(pages: mpsc::Receiver<Page>, taken: PageTaken) -> Self {
        Self { source: Some(Source { pages, taken }) }
    }

    /// An input that is already here, for tests of providers.
    pub fn ready(items: &[serde_json::Value]) -> Self {
        let (sender, pages) = mpsc::channel(1);
        let items = serde_json::Value::from(items).to_string().into();
        let _ = sender.try_send(Page { index: 0, part: String::new(), items, last: true });
        Self { source: Some(Source { pages, taken: PageTaken::default() }) }
    }

    /// Whether the task has such an input at all.
    pub fn is_some(&self) -> bool {
        self.source.is_some()
    }

    /// The next page and the part it belongs to (`observed` or `descendants`); None after the last.
    ///
    /// # Errors
    /// Transient, when the stream broke while the input was arriving: pages are not sent twice, so the task must
    /// start again.
    pub async fn next_page(&mut self) -> Result<Option<(String, Vec<Json>)>, TaskError> {
        let Some(source) = &mut self.source else { return Ok(None) };
        let Some(page) = source.pages.recv().await else {
            return Err(TaskError::transient("the connection was lost while the task's input was arriving"));
        };
        let items: Vec<Box<RawValue>> = serde_json::from_slice(&page.items)?;
        source.taken.tell(page.index);
        if page.last {
            self.source = None;
        }
        Ok(Some((page.part, items.into_iter().map(Json::from).collect())))
    }

    /// All items at once, parsed; for inputs known to be small.
    ///
    /// # Errors
    /// As [`Self::next_page`], and when an item does not parse.
    pub async fn collect<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, TaskError> {
        let mut all = Vec::new();
        while let Some((_, items)) = self.next_page().await? {
            for item in items {
                all.push(item.parse()?);
            }
        }
        Ok(all)
    }
}
