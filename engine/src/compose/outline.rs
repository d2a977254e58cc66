//! What is kept in memory of a composer's output: who is in it and who needs whom, not what they are.
//!
//! An output may hold a million children. Their payloads stay in the staging table and are read again where they are
//! needed, some hundreds at a time; names, edges and places take about a hundred bytes a child. A small output keeps its
//! payloads, so that the usual composition is read from the database once.

use crate::engine::Core;
use converge_domain::composition::{ChildItem, Children, EdgeItem, Graph, GraphBuilder};
use converge_domain::document::{self, Document, ProviderConfigDocument};
use converge_domain::json::faithful;
use converge_domain::schema::Violation;
use converge_domain::{ClaimId, KindRef, ResourceId};
use converge_event_store::{StagedPart, StoreError};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// Most children of one composition.
pub(crate) const CHILDREN_MAX: usize = 1_000_000;
/// Most edges of one composition.
const EDGES_MAX: usize = 4_000_000;
/// Most provider configs of one composition: they are kept in memory, and so are all configs of the fleet.
const CONFIGS_MAX: usize = 1_000;
/// Most bytes of one composition's output.
const BYTES_MAX: usize = 2 << 30;
/// Payloads of an output of at most this many bytes are kept.
const KEPT_BYTES_MAX: usize = 1 << 20;
const PAGE: u32 = 2000;
/// Faults reported of one item.
const FAULTS_MAX: usize = 5;
/// Faulty items after which reading stops: nobody reads more of them.
const BROKEN_MAX: usize = 1000;

/// One composer's whole output; children are named by their place in it.
pub(crate) struct Outline {
    pub graph: Graph,
    /// Hex SHA-256 over every item in order.
    pub digest: String,
    root: ResourceId,
    claim_id: ClaimId,
    /// Where each child is staged.
    ordinals: Vec<u32>,
    /// The children themselves, of a small output.
    kept: Option<Vec<ChildItem>>,
    /// The provider configs, in order.
    pub configs: Vec<ProviderConfigDocument>,
}

/// A staged output as it was found.
pub(crate) struct Found {
    /// Children, edges and configs that could be read.
    pub counts: [u64; 3],
    /// Items that could not be read, as messages.
    pub broken: Vec<String>,
    /// The kind versions that occur.
    pub kinds: HashSet<KindRef>,
    draft: Draft,
}

/// Everything about an output but its edges.
struct Draft {
    root: ResourceId,
    claim_id: ClaimId,
    digest: String,
    children: Children,
    ordinals: Vec<u32>,
    kept: Option<Vec<ChildItem>>,
    configs: Vec<ProviderConfigDocument>,
    /// The ordinals between which edges are staged: the first, and the last.
    edges: Option<(i64, i64)>,
}

/// Reads the output staged under a claim, its edges aside.
pub(crate) async fn find(core: &Core, root: ResourceId, claim_id: ClaimId) -> Result<Found, StoreError> {
    let mut found = Found {
        counts: [0; 3],
        broken: Vec::new(),
        kinds: HashSet::new(),
        draft: Draft {
            root,
            claim_id,
            digest: String::new(),
            children: Children::default(),
            ordinals: Vec::new(),
            kept: Some(Vec::new()),
            configs: Vec::new(),
            edges: None,
        },
    };
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
            found.take(item.part, item.ordinal, &item.payload);
        }
        if bytes > KEPT_BYTES_MAX {
            found.draft.kept = None;
        }
        let [children, edges, configs] = found.counts;
        let too_many =
            children > CHILDREN_MAX as u64 || edges > EDGES_MAX as u64 || configs > CONFIGS_MAX as u64;
        if bytes > BYTES_MAX || too_many {
            found.broken.push(format!(
                "the output is too large: at most {CHILDREN_MAX} children, {EDGES_MAX} edges, {CONFIGS_MAX} configs and \
                 {BYTES_MAX} bytes"
            ));
            break;
        }
        if found.broken.len() > BROKEN_MAX {
            break;
        }
    }
    found.draft.digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(found)
}

impl Found {
    fn take(&mut self, part: StagedPart, ordinal: i64, payload: &str) {
        let [children, edges, configs] = &mut self.counts;
        match part {
            StagedPart::Child => match parse(payload).and_then(ChildItem::parse) {
                Ok(child) => {
                    *children += 1;
                    self.draft.children.push(&child.kind, &child.name);
                    // Frames carry ordinals from 0, and the counts are bounded far below 32 bits.
                    self.draft.ordinals.push(u32::try_from(ordinal).unwrap_or(u32::MAX));
                    let kind = child.kind_ref();
                    if !self.kinds.contains(&kind) {
                        self.kinds.insert(kind);
                    }
                    if let Some(kept) = &mut self.draft.kept {
                        kept.push(child);
                    }
                }
                Err(violations) => {
                    let place = *children + *edges;
                    tell(&mut self.broken, &format!("child {place}"), &violations);
                }
            },
            StagedPart::Edge => {
                *edges += 1;
                let (first, _) = self.draft.edges.unwrap_or((ordinal, ordinal));
                self.draft.edges = Some((first, ordinal));
            }
            StagedPart::Config => match parse(payload).and_then(config) {
                Ok(document) => {
                    *configs += 1;
                    self.draft.configs.push(document);
                }
                Err(violations) => tell(&mut self.broken, &format!("config {configs}"), &violations),
            },
        }
    }

    /// Reads the edges and builds the graph; Err: why the output is none.
    pub async fn outline(self, core: &Core) -> Result<Result<Outline, Vec<String>>, StoreError> {
        let Draft { root, claim_id, digest, children, ordinals, kept, configs, edges } = self.draft;
        let mut builder = children.seal();
        let mut broken = Vec::new();
        if let Some((first, last)) = edges {
            let mut after = first - 1;
            let mut number = 0;
            while after < last && broken.len() <= BROKEN_MAX {
                let items = core.store.staged(root, claim_id, after, PAGE).await?;
                let Some(end) = items.last() else { break };
                after = end.ordinal;
                for item in items.iter().filter(|item| item.part == StagedPart::Edge) {
                    add_edge(&mut builder, number, &item.payload, &mut broken);
                    number += 1;
                }
            }
        }
        if !broken.is_empty() {
            return Ok(Err(broken));
        }
        Ok(match builder.finish() {
            Ok(graph) => Ok(Outline { graph, digest, root, claim_id, ordinals, kept, configs }),
            Err(errors) => Err(errors.iter().map(ToString::to_string).collect()),
        })
    }
}

fn add_edge(builder: &mut GraphBuilder, number: usize, payload: &str, broken: &mut Vec<String>) {
    match parse(payload).and_then(EdgeItem::parse) {
        Ok(edge) => builder.edge(&edge),
        Err(violations) => tell(broken, &format!("edge {number}"), &violations),
    }
}

/// An item's text as JSON.
fn parse(payload: &str) -> Result<Value, Vec<Violation>> {
    faithful::parse(payload).map_err(|faults| {
        faults.into_iter().map(|fault| Violation { pointer: fault.pointer, message: fault.message }).collect()
    })
}

/// A provider config as a composer writes it: the document that a user would apply, its `type` aside.
fn config(value: Value) -> Result<ProviderConfigDocument, Vec<Violation>> {
    let fault = |message: &str| vec![Violation { pointer: String::new(), message: message.to_owned() }];
    match document::parse(value, Some("providerconfig"))? {
        Document::ProviderConfig(config) if config.is_default => {
            Err(fault("a composer cannot set the default config of a kind, which is everybody's"))
        }
        Document::ProviderConfig(config) => Ok(config),
        _ => Err(fault("only provider configs belong here")),
    }
}

fn tell(broken: &mut Vec<String>, subject: &str, violations: &[Violation]) {
    for violation in violations.iter().take(FAULTS_MAX) {
        broken.push(format!("{subject} {}: {}", violation.pointer, violation.message));
    }
}

impl Outline {
    /// The claim that it was staged under.
    pub fn claim_id(&self) -> ClaimId {
        self.claim_id
    }

    /// Keeps what is needed to read the children again.
    pub fn forget_payloads(&mut self) {
        self.kept = None;
    }

    /// The number of children.
    pub fn len(&self) -> usize {
        self.graph.len()
    }

    /// The number of edges.
    pub fn edges(&self) -> u64 {
        self.graph.order().iter().map(|child| self.graph.upstreams(*child).len() as u64).sum()
    }

    /// The children at these places, in their order; None when one of them is not staged any more.
    pub async fn children(&self, core: &Core, places: &[u32]) -> Result<Option<Vec<ChildItem>>, StoreError> {
        if let Some(kept) = &self.kept {
            return Ok(places.iter().map(|place| kept.get(*place as usize).cloned()).collect());
        }
        let ordinal = |place: &u32| self.ordinals.get(*place as usize).map(|ordinal| i64::from(*ordinal));
        let Some(ordinals) = places.iter().map(ordinal).collect::<Option<Vec<i64>>>() else {
            return Ok(None);
        };
        let items = core.store.staged_at(self.root, self.claim_id, &ordinals).await?;
        let by_ordinal = |ordinal: &i64| {
            let at = items.binary_search_by_key(ordinal, |item| item.ordinal).ok()?;
            parse(&items.get(at)?.payload).and_then(ChildItem::parse).ok()
        };
        Ok(ordinals.iter().map(by_ordinal).collect())
    }
}
