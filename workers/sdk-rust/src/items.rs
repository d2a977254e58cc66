//! A long list of JSON documents in little memory.

use bytes::Bytes;
use converge_protocol::FRAME_BYTES_MAX;
use lz4_flex::block;
use serde::Serialize;

/// JSON documents in the order in which they were added.
///
/// They are packed into frames of the size that travels, and all frames but the last are compressed: the documents of a
/// composition resemble each other, so that a million of them take about a tenth of their text. The list is split in
/// the same way each time it is sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Items {
    full: Vec<Frame>,
    /// The text of the last frame, and where each document ends in it. At most [`FRAME_BYTES_MAX`], unless a single document
    /// is longer.
    text: Vec<u8>,
    ends: Vec<u32>,
    len: usize,
    longest: usize,
}

/// Documents, one after the other, compressed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Frame {
    packed: Box<[u8]>,
    text_len: usize,
    ends: Box<[u32]>,
}

impl Items {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text of each.
    pub fn iter(&self) -> impl Iterator<Item = Bytes> {
        self.frames().flatten()
    }

    /// The length of the longest.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Runs of documents of at most a frame's size each, whose texts share one allocation.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Vec<Bytes>> {
        let full = self.full.iter().map(Frame::documents);
        let last = || split(&Bytes::copy_from_slice(&self.text), &self.ends);
        full.chain((!self.ends.is_empty()).then(last))
    }

    /// Adds the text of one.
    pub(crate) fn push(&mut self, text: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.end(start);
    }

    /// Adds `item`, which must be of a type that cannot fail to serialize.
    #[expect(clippy::expect_used, reason = "callers hold strings, maps with string keys and JSON values")]
    pub(crate) fn push_json(&mut self, item: &impl Serialize) {
        let start = self.text.len();
        serde_json::to_writer(&mut self.text, item).expect("string-keyed data serializes");
        self.end(start);
    }

    /// Ends the document that begins at `start`, and begins a new frame with it when the last one is then too long.
    fn end(&mut self, start: usize) {
        if self.text.len() > FRAME_BYTES_MAX && start > 0 {
            let document = self.text.split_off(start);
            let ends = std::mem::take(&mut self.ends);
            self.full.push(Frame {
                packed: block::compress(&self.text).into(),
                text_len: self.text.len(),
                ends: ends.into(),
            });
            self.text.clear();
            self.text.extend_from_slice(&document);
            self.longest = self.longest.max(document.len());
        } else {
            self.longest = self.longest.max(self.text.len() - start);
        }
        // A task that makes a document of 4 GiB has run out of memory before.
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        self.len += 1;
    }
}

impl Frame {
    #[expect(clippy::expect_used, reason = "it was compressed here")]
    fn documents(&self) -> Vec<Bytes> {
        let text = block::decompress(&self.packed, self.text_len).expect("what was compressed can be read");
        split(&text.into(), &self.ends)
    }
}

fn split(text: &Bytes, ends: &[u32]) -> Vec<Bytes> {
    let mut start = 0;
    let document = |end: &u32| {
        let document = text.slice(start..*end as usize);
        start = *end as usize;
        document
    };
    ends.iter().map(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(documents: &[Vec<u8>]) -> Items {
        let mut items = Items::default();
        documents.iter().for_each(|text| items.push(text));
        items
    }

    #[test]
    fn frames_hold_every_item_in_order_and_never_more_than_their_limit() {
        let documents: Vec<Vec<u8>> = (0..50).map(|i| vec![b'x'; 50_000 + i]).collect();
        let items = of(&documents);
        let frames: Vec<Vec<Bytes>> = items.frames().collect();
        assert!(frames.len() > 1);
        assert!(frames.iter().all(|frame| frame.iter().map(Bytes::len).sum::<usize>() <= FRAME_BYTES_MAX));
        assert_eq!(items.iter().collect::<Vec<_>>(), documents);
        assert_eq!((items.len(), items.longest()), (50, 50_049));
        assert_eq!((Items::default().len(), Items::default().iter().count()), (0, 0));
    }

    #[test]
    fn a_document_of_any_length_has_a_place() {
        let long = vec![b'b'; FRAME_BYTES_MAX + 1];
        let documents = [vec![b'a'; 3], long.clone(), Vec::new(), vec![b'c'; FRAME_BYTES_MAX], long];
        let items = of(&documents);
        assert_eq!(items.iter().collect::<Vec<_>>(), documents);
        assert_eq!((items.len(), items.longest()), (5, FRAME_BYTES_MAX + 1));
    }

    #[test]
    fn many_documents_that_resemble_each_other_take_a_part_of_their_text() {
        let documents: Vec<Vec<u8>> = (0..20_000)
            .map(|i| format!(r#"{{"kind":"vpc","name":"vpc-{i}","cidr":"10.0.0.0/16"}}"#).into_bytes())
            .collect();
        let items = of(&documents);
        let packed: usize = items.full.iter().map(|frame| frame.packed.len()).sum();
        let text: usize = items.full.iter().map(|frame| frame.text_len).sum();
        assert!(!items.full.is_empty() && packed * 2 < text, "{packed} of {text}");
        assert_eq!(items.iter().collect::<Vec<_>>(), documents);
    }
}
