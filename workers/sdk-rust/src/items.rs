//! A long list of JSON documents in little memory.

use converge_protocol::FRAME_BYTES_MAX;
use serde::Serialize;
use std::ops::Range;

/// JSON documents in the order in which they were added, packed into frames of the size that travels: a document costs its
/// text and four bytes, and the list is split in the same way each time it is sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Items {
    frames: Vec<Frame>,
}

/// Documents, one after the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Frame {
    /// At most [`FRAME_BYTES_MAX`], unless a single document is longer.
    text: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Items {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.frames.iter().map(|frame| frame.ends.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The text of each.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().flat_map(Frame::iter)
    }

    /// Adds the text of one.
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.write(|frame| frame.extend_from_slice(text));
    }

    /// Adds `item`, which must be of a type that cannot fail to serialize.
    pub(crate) fn push_json(&mut self, item: &impl Serialize) {
        #[expect(
            clippy::expect_used,
            reason = "callers hold strings, maps with string keys and JSON values"
        )]
        self.write(|frame| serde_json::to_writer(frame, item).expect("string-keyed data serializes"));
    }

    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Has one document appended to the last frame, and moves it to a new one if the frame is then too long.
    fn write(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let Some(last) = self.frames.last_mut() else { return };
        let start = last.text.len();
        append(&mut last.text);
        if last.text.len() > FRAME_BYTES_MAX && start > 0 {
            let text = last.text.split_off(start);
            last.text.shrink_to_fit();
            self.frames.push(Frame { ends: vec![text.len()], text });
        } else {
            last.ends.push(last.text.len());
        }
    }
}

impl Frame {
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where in the text each document is.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| start..*end)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges().filter_map(|range| self.text.get(range))
    }
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
        assert!(items.frames().len() > 1);
        assert!(
            items.frames().iter().all(|frame| frame.text.len() <= FRAME_BYTES_MAX && !frame.ends.is_empty())
        );
        assert_eq!(items.iter().collect::<Vec<_>>(), documents);
        assert_eq!((items.len(), Items::default().len(), Items::default().iter().count()), (50, 0, 0));
    }

    #[test]
    fn a_document_of_any_length_has_a_place() {
        let documents =
            [vec![b'a'; 3], vec![b'b'; FRAME_BYTES_MAX + 1], Vec::new(), vec![b'c'; FRAME_BYTES_MAX]];
        let items = of(&documents);
        assert_eq!(items.iter().collect::<Vec<_>>(), documents);
    }
}
