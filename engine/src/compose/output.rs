//! A staged output, read back and checked against its digest.

use crate::engine::Core;
use converge_domain::composition::{ChildItem, EdgeItem};
use converge_domain::json::faithful;
use converge_domain::schema::Violation;
use converge_domain::{ClaimId, ResourceId};
use converge_event_store::{StagedPart, StoreError};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Most children of one composition.
pub(crate) const CHILDREN_MAX: u64 = 1_000_000;
/// Most bytes of one composition's output.
const BYTES_MAX: usize = 1 << 30;
const PAGE: u32 = 2000;

/// One composer's whole output.
#[derive(Default)]
pub(crate) struct Output {
    pub children: Vec<ChildItem>,
    pub edges: Vec<EdgeItem>,
    pub configs: u64,
    /// Hex SHA-256 over every item in order.
    pub digest: String,
    /// Items that could not be read, as messages.
    pub broken: Vec<String>,
}

/// Reads the output staged under a claim.
pub(crate) async fn read(core: &Core, root: ResourceId, claim_id: ClaimId) -> Result<Output, StoreError> {
    let mut output = Output::default();
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut after = -1;
    loop {
        let items = core.store.staged(root, claim_id, after, PAGE).await?;
        let Some(last) = items.last() else { break };
        after = last.ordinal;
        for item in &items {
            hash.update([item.part as u8]);
            hash.update((item.payload.len() as u64).to_be_bytes());
            hash.update(item.payload.as_bytes());
            bytes += item.payload.len();
            output.take(item.part, &item.payload);
        }
        if bytes > BYTES_MAX || output.children.len() as u64 > CHILDREN_MAX {
            output.broken.push(format!(
                "the output is too large: at most {CHILDREN_MAX} children and {BYTES_MAX} bytes"
            ));
            break;
        }
    }
    output.digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(output)
}

/// An item's text as JSON.
fn parse(payload: &str) -> Result<Value, Vec<Violation>> {
    faithful::parse(payload).map_err(|faults| {
        faults.into_iter().map(|fault| Violation { pointer: fault.pointer, message: fault.message }).collect()
    })
}

impl Output {
    fn take(&mut self, part: StagedPart, payload: &str) {
        let place = self.children.len() + self.edges.len();
        match part {
            StagedPart::Child => match parse(payload).and_then(ChildItem::parse) {
                Ok(child) => self.children.push(child),
                Err(violations) => self.broken(&format!("child {place}"), &violations),
            },
            StagedPart::Edge => match parse(payload).and_then(EdgeItem::parse) {
                Ok(edge) => self.edges.push(edge),
                Err(violations) => self.broken(&format!("edge {}", self.edges.len()), &violations),
            },
            StagedPart::Config => self.configs += 1,
        }
    }

    fn broken(&mut self, subject: &str, violations: &[Violation]) {
        for violation in violations.iter().take(5) {
            self.broken.push(format!("{subject} {}: {}", violation.pointer, violation.message));
        }
    }
}
