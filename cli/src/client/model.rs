//! The answers, as far as this client reads them.
//!
//! A resource comes in several widths; what was not asked for is empty. Counters are decimal strings on
//! the wire and numbers here.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// `{resource}`.
#[derive(Debug, Deserialize)]
pub struct ResourceAnswer {
    pub resource: Option<Resource>,
}

/// `{resources}`.
#[derive(Debug, Deserialize)]
pub struct ResourcesAnswer {
    pub resources: ResourcePage,
}

/// A page of resources.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePage {
    pub nodes: Vec<Resource>,
    pub page_info: PageInfo,
    #[serde(deserialize_with = "decimal")]
    pub position: u64,
}

/// Where a page ends.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageInfo {
    pub has_next_page: bool,
    pub end_cursor: Option<String>,
}

/// A resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    pub id: String,
    pub kind: String,
    #[serde(default)]
    pub kind_version: u16,
    pub name: String,
    #[serde(default)]
    pub labels: Value,
    #[serde(default)]
    pub spec: Value,
    #[serde(default)]
    pub effective_spec: Value,
    #[serde(default)]
    pub status: Value,
    pub phase: String,
    #[serde(default)]
    pub why: String,
    #[serde(default)]
    pub conditions: Vec<Condition>,
    #[serde(default, deserialize_with = "decimal")]
    pub generation: u64,
    #[serde(default, deserialize_with = "decimal")]
    pub synced_generation: u64,
    #[serde(default, deserialize_with = "decimal")]
    pub revision: u64,
    #[serde(default, deserialize_with = "decimal")]
    pub epoch: u64,
    #[serde(default)]
    pub owner: Option<Owner>,
    #[serde(default)]
    pub root: String,
    #[serde(default)]
    pub provider_config_ref: Option<String>,
    #[serde(default)]
    pub deletion_protection: bool,
    #[serde(default)]
    pub depends_on: Vec<Edge>,
    #[serde(default)]
    pub attempts: u32,
    #[serde(default)]
    pub last_failure: Option<LastFailure>,
    #[serde(default)]
    pub claim: Option<Claim>,
    #[serde(default)]
    pub retry_at: Option<DateTime<Utc>>,
    /// None: nobody set it aside.
    #[serde(default)]
    pub quarantine_reason: Option<String>,
    /// The end of the grace window of a child that its composer dropped.
    #[serde(default)]
    pub kept_until: Option<DateTime<Utc>>,
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub events: Vec<Event>,
}

/// Who owns a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Owner {
    pub id: String,
    pub kind: String,
    pub name: String,
}

/// See Kubernetes' conditions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition: DateTime<Utc>,
    #[serde(deserialize_with = "decimal")]
    pub observed_generation: u64,
}

/// What a resource waits for, and the values it takes from there.
#[derive(Clone, Debug, Deserialize)]
pub struct Edge {
    pub kind: String,
    pub name: String,
    /// None: there is none of that name to lean on.
    #[serde(default)]
    pub id: Option<String>,
    /// Somebody else holds the name of the child that was wanted there.
    #[serde(default)]
    pub conflicted: bool,
    #[serde(default)]
    pub values: Vec<FieldFlow>,
}

/// One value's way from an upstream's status into a spec.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldFlow {
    pub dependent_field: String,
    pub source_field: String,
    #[serde(default)]
    pub flowed: bool,
    #[serde(default)]
    pub value: Value,
    /// Of the event that gave the value.
    #[serde(default, deserialize_with = "optional_decimal")]
    pub position: Option<u64>,
    #[serde(default)]
    pub reason: Option<String>,
}

/// The last failure of a resource's own reaction.
#[derive(Clone, Debug, Deserialize)]
pub struct LastFailure {
    pub reaction: String,
    pub message: String,
    pub terminal: bool,
    pub attempt: u32,
    pub at: DateTime<Utc>,
}

/// A task in a worker's hands.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    pub reaction: String,
    pub worker: String,
    #[serde(deserialize_with = "decimal")]
    pub epoch: u64,
    pub claim_id: String,
    pub claimed_at: DateTime<Utc>,
    #[serde(default)]
    pub deadline_at: Option<DateTime<Utc>>,
}

/// `{tree}`.
#[derive(Debug, Deserialize)]
pub struct TreeAnswer {
    pub tree: TreePage,
}

/// A page of a composition.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreePage {
    pub nodes: Vec<TreeNode>,
    pub page_info: PageInfo,
}

/// One resource of a composition; the root's depth is 0.
#[derive(Debug, Deserialize)]
pub struct TreeNode {
    pub depth: usize,
    pub resource: Resource,
}

/// `{kinds}`.
#[derive(Debug, Deserialize)]
pub struct KindsAnswer {
    pub kinds: Vec<Kind>,
}

/// A kind version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    pub kind: String,
    pub kind_version: u16,
    pub provider: String,
    pub manifest: Value,
}

/// `{providerConfigs}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigsAnswer {
    pub provider_configs: Vec<ProviderConfig>,
}

/// A provider config, without its opaque bundle.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfig {
    pub name: String,
    pub kind: String,
    pub kind_version: u16,
    pub is_default: bool,
    pub spec: Value,
    pub data_bytes: u64,
}

/// `{events}`.
#[derive(Debug, Deserialize)]
pub struct EventsAnswer {
    pub events: EventPage,
}

/// `{events}`, for its position alone.
#[derive(Debug, Deserialize)]
pub struct PositionAnswer {
    pub events: LogEnd,
}

/// The end of the log.
#[derive(Debug, Deserialize)]
pub struct LogEnd {
    #[serde(deserialize_with = "decimal")]
    pub position: u64,
}

/// A page of the log.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    pub nodes: Vec<Event>,
    /// The last position looked at, shown or not.
    #[serde(deserialize_with = "decimal")]
    pub end_position: u64,
    pub has_more: bool,
}

/// One fact of the log.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    #[serde(deserialize_with = "decimal")]
    pub position: u64,
    pub at: DateTime<Utc>,
    pub aggregate_type: String,
    pub aggregate_id: String,
    #[serde(deserialize_with = "decimal")]
    pub sequence: u64,
    pub event_type: String,
    pub payload: Value,
    #[serde(default)]
    pub metadata: Value,
    #[serde(default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
}

impl super::Positioned for Event {
    fn position(&self) -> u64 {
        self.position
    }
}

/// A resource changed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceChange {
    #[serde(deserialize_with = "decimal")]
    pub position: u64,
    pub event_type: String,
    pub kind: String,
    pub name: String,
    #[serde(default)]
    pub phase: Option<String>,
    #[serde(default)]
    pub resource: Option<Resource>,
    #[serde(default)]
    pub left_filter: bool,
}

impl super::Positioned for ResourceChange {
    fn position(&self) -> u64 {
        self.position
    }
}

/// `{summary}`.
#[derive(Debug, Deserialize)]
pub struct SummaryAnswer {
    pub summary: Summary,
}

/// Phase counts.
#[derive(Clone, Debug, Deserialize)]
pub struct Summary {
    pub counts: Vec<PhaseCount>,
}

/// How many resources of a kind are in a phase.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct PhaseCount {
    pub kind: String,
    pub phase: String,
    pub count: u64,
}

/// `{apply}`.
#[derive(Debug, Deserialize)]
pub struct ApplyAnswer {
    pub apply: ApplyPayload,
}

/// What an apply did.
#[derive(Debug, Deserialize)]
pub struct ApplyPayload {
    #[serde(deserialize_with = "decimal")]
    pub position: u64,
    pub results: Vec<ApplyResult>,
}

/// What an apply did to one document.
#[derive(Debug, Deserialize)]
pub struct ApplyResult {
    #[serde(rename = "type")]
    pub document_type: String,
    pub kind: String,
    pub name: String,
    pub id: String,
    pub verb: String,
    #[serde(default, deserialize_with = "optional_decimal")]
    pub revision: Option<u64>,
    #[serde(default, deserialize_with = "optional_decimal")]
    pub generation: Option<u64>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// `{deleteMany}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteManyAnswer {
    pub delete_many: DeleteManyPayload,
}

/// What a delete of many did.
#[derive(Debug, Deserialize)]
pub struct DeleteManyPayload {
    #[serde(deserialize_with = "decimal")]
    pub position: u64,
    pub going: Vec<Going>,
}

/// A resource whose deletion was accepted.
#[derive(Debug, Deserialize)]
pub struct Going {
    pub id: String,
    pub kind: String,
    pub name: String,
    pub already: bool,
    #[serde(default)]
    pub notes: Vec<String>,
}

/// `{acted: …}`, whatever was done.
#[derive(Debug, Deserialize)]
pub struct ActAnswer {
    pub acted: ActPayload,
}

/// What an action did.
#[derive(Debug, Deserialize)]
pub struct ActPayload {
    #[serde(deserialize_with = "decimal")]
    pub position: u64,
    pub results: Vec<Acted>,
}

/// What an action did to one resource.
#[derive(Debug, Deserialize)]
pub struct Acted {
    pub id: String,
    pub kind: String,
    pub name: String,
    pub changed: bool,
    #[serde(default)]
    pub notes: Vec<String>,
}

/// `{graph}`.
#[derive(Debug, Deserialize)]
pub struct GraphAnswer {
    pub graph: Option<Graph>,
}

/// What depends on what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Graph {
    pub complete: bool,
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

/// A resource of a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphNode {
    pub id: String,
    pub kind: String,
    pub name: String,
    pub phase: String,
    pub owner: Option<Owner>,
}

/// One resource needs another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphEdge {
    pub from: String,
    pub to: GraphUpstream,
}

/// What is needed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphUpstream {
    /// None: nobody bears the name yet, or somebody else does.
    pub id: Option<String>,
    pub kind: String,
    pub name: String,
    pub conflicted: bool,
    pub values: Vec<GraphFlow>,
}

/// A value that flows, with where it came from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "camelCase"))]
pub struct GraphFlow {
    pub dependent_field: String,
    pub source_field: String,
    pub flowed: bool,
    pub value: Value,
    #[serde(default, deserialize_with = "optional_decimal")]
    pub source_sequence: Option<u64>,
    #[serde(default, deserialize_with = "optional_decimal")]
    pub position: Option<u64>,
    pub reason: Option<String>,
}

/// A 64-bit number: a decimal string on the wire; a plain number is read too.
#[derive(Deserialize)]
#[serde(untagged)]
enum Decimal {
    Text(String),
    Number(u64),
}

impl Decimal {
    fn value<E: serde::de::Error>(self) -> Result<u64, E> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Text(text) => {
                text.parse().map_err(|_| E::custom(format!("`{text}` is not a 64-bit number")))
            }
        }
    }
}

fn decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Decimal::deserialize(deserializer)?.value()
}

fn optional_decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::<Decimal>::deserialize(deserializer)?.map(Decimal::value).transpose()
}
