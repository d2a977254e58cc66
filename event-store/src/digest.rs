//! Hashes that make a changed, lost or reordered event visible.
//!
//! Every event has a digest over its stored columns; a batch's digest is the hash of its events' digests; the
//! chain hash of a batch covers the previous chain hash, so it stands for the whole log up to there. The
//! position is left out of the event's digest because it is not known before the log lock is held; the chain
//! adds it back through the batch's first position and count.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A SHA-256 value.
pub type Hash = [u8; 32];

/// The chain hash before the first batch.
pub const CHAIN_START: Hash = [0; 32];

/// The stored columns of one event, all but its position.
#[derive(Clone, Copy, Debug)]
pub struct EventColumns<'a> {
    pub aggregate_type: &'a str,
    pub aggregate_id: Uuid,
    pub sequence: u64,
    pub event_type: &'a str,
    pub event_version: &'a str,
    pub payload: &'a str,
    pub metadata: &'a str,
}

/// Hashes the columns, each behind its length, so that no two different rows hash the same bytes.
pub fn event_digest(event: EventColumns<'_>) -> Hash {
    let mut hasher = Sha256::new();
    let mut column = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    column(event.aggregate_type.as_bytes());
    column(event.aggregate_id.as_bytes());
    column(&event.sequence.to_be_bytes());
    column(event.event_type.as_bytes());
    column(event.event_version.as_bytes());
    column(event.payload.as_bytes());
    column(event.metadata.as_bytes());
    hasher.finalize().into()
}

/// The digest of a batch with these events, in order.
pub fn batch_digest<'a>(events: impl IntoIterator<Item = &'a Hash>) -> Hash {
    let mut hasher = Sha256::new();
    for digest in events {
        hasher.update(digest);
    }
    hasher.finalize().into()
}

/// The chain hash of a batch behind `previous`. `committed_at_us` is in microseconds since the epoch.
pub fn chain(previous: &[u8], digest: &Hash, first: u64, count: u32, committed_at_us: i64) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(previous);
    hasher.update(digest);
    hasher.update(first.to_be_bytes());
    hasher.update(u64::from(count).to_be_bytes());
    hasher.update(committed_at_us.to_be_bytes());
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns<'a>(event_type: &'a str, event_version: &'a str) -> EventColumns<'a> {
        EventColumns {
            aggregate_type: "resource",
            aggregate_id: Uuid::nil(),
            sequence: 1,
            event_type,
            event_version,
            payload: "{}",
            metadata: "{}",
        }
    }

    #[test]
    fn bytes_moved_between_columns_change_the_digest() {
        assert_ne!(event_digest(columns("Created1", "2")), event_digest(columns("Created", "12")));
    }

    #[test]
    fn the_chain_covers_position_and_time() {
        let digest = batch_digest(&[event_digest(columns("Created", "1"))]);
        let base = chain(&CHAIN_START, &digest, 1, 1, 10);
        assert_ne!(base, chain(&CHAIN_START, &digest, 2, 1, 10));
        assert_ne!(base, chain(&CHAIN_START, &digest, 1, 1, 11));
        assert_ne!(base, chain(&base, &digest, 1, 1, 10));
    }
}
