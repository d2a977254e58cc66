//! What people and tools may ask of the engine, as a trait: GraphQL and the CLI's in-process use go through it.

use async_trait::async_trait;
use converge_domain::document::Document;
use converge_domain::resource::ResourceState;
use converge_domain::{
    AggregateId, CommandId, Generation, KindRef, Position, ResourceId, ResourceRef, Revision,
};
use std::sync::Arc;

/// Who asks, and under which request.
#[derive(Clone, Debug, Default)]
pub struct RequestContext {
    pub actor: String,
    pub request_id: String,
    /// Deduplicates retries of the request: the same id executes once.
    pub command_id: Option<CommandId>,
}

/// What an apply did to one document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Created,
    Configured,
    Unchanged,
}

/// The answer for one applied document.
#[derive(Clone, Debug)]
pub struct Applied {
    /// `kind`, `resource`, `providerconfig` or `reactorbinding`.
    pub document_type: String,
    /// For a resource its kind; for others empty.
    pub kind: String,
    /// For a kind `vpc/v1`; else the name.
    pub name: String,
    pub id: AggregateId,
    pub verb: Verb,
    pub revision: Option<Revision>,
    pub generation: Option<Generation>,
    /// Advice, such as a stored knob that is not built yet.
    pub warnings: Vec<String>,
}

/// The answer to a whole apply.
#[derive(Clone, Debug)]
pub struct ApplyAnswer {
    pub position: Position,
    pub applied: Vec<Applied>,
}

/// A delete of one or more resources, accepted or refused as a whole.
#[derive(Clone, Debug, Default)]
pub struct DeleteRequest {
    pub targets: Vec<ResourceRef>,
    /// Takes live dependents in other roots along instead of being refused for them.
    pub cascade: bool,
}

/// The answer to a delete.
#[derive(Clone, Debug)]
pub struct DeleteAnswer {
    pub position: Position,
    /// One for each target, in their order; then what the cascade took along.
    pub going: Vec<Going>,
}

/// A resource whose deletion was accepted.
#[derive(Clone, Debug)]
pub struct Going {
    pub id: ResourceId,
    pub reference: ResourceRef,
    /// It was Deleting already.
    pub already: bool,
    /// What the user should know, such as that a composer will make it anew.
    pub notes: Vec<String>,
}

/// What an operator does to resources by hand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Set aside: nothing is scheduled, nothing flows, it is left out of its owner's rollup.
    Quarantine,
    /// The end of a quarantine.
    Release,
    /// Look at the world again; try a Failed one again.
    Resync,
    /// Give up a teardown that cannot end: what it managed may leak.
    Abandon,
    /// Let a held prune happen; `digest` is the one that the condition `PruneHeld` shows.
    ConfirmPrune { digest: String },
}

/// An action on one or more resources, accepted or refused as a whole.
#[derive(Clone, Debug)]
pub struct ActRequest {
    pub targets: Vec<ResourceRef>,
    pub action: Action,
    /// Why, in the operator's words; kept in the log.
    pub reason: String,
}

/// The answer to an action.
#[derive(Clone, Debug)]
pub struct ActAnswer {
    pub position: Position,
    /// One for each target, in their order.
    pub acted: Vec<Acted>,
}

/// What an action did to one resource.
#[derive(Clone, Debug)]
pub struct Acted {
    pub id: ResourceId,
    pub reference: ResourceRef,
    /// False: it was so already, nothing was appended.
    pub changed: bool,
    /// What the operator should know.
    pub notes: Vec<String>,
}

/// One broken rule of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Index of the document in the request.
    pub document: usize,
    /// `kind/name` of the document as far as it could be read.
    pub subject: String,
    /// JSON Pointer into the document.
    pub pointer: String,
    pub message: String,
}

/// A refused request. Nothing was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("{} violation(s); first: {}", .0.len(), .0.first().map(|v| format!("{} {}: {}", v.subject, v.pointer, v.message)).unwrap_or_default())]
    Validation(Vec<Violation>),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Unavailable(String),
}

/// Why a resource is not Ready, and what happens next.
#[derive(Clone, Debug, Default)]
pub struct Why {
    /// One sentence; empty for a Ready resource.
    pub sentence: String,
}

/// The engine as people see it.
#[async_trait]
pub trait Gateway: Send + Sync + 'static {
    /// Applies documents, all or nothing, in the order kinds, configs, bindings, resources.
    async fn apply(
        &self,
        documents: Vec<Document>,
        context: RequestContext,
    ) -> Result<ApplyAnswer, GatewayError>;
    /// Requests the deletion of all targets, or of none.
    async fn delete(
        &self,
        request: DeleteRequest,
        context: RequestContext,
    ) -> Result<DeleteAnswer, GatewayError>;
    /// Deletes a kind version that no resource needs: none is of it, and none was last claimed under it. The position of its
    /// event.
    async fn delete_kind(&self, kind: KindRef, context: RequestContext) -> Result<Position, GatewayError>;
    /// Acts on all targets, or on none.
    async fn act(&self, request: ActRequest, context: RequestContext) -> Result<ActAnswer, GatewayError>;
    /// The live resource of that name.
    async fn resource(&self, target: &ResourceRef) -> Result<Option<Arc<ResourceState>>, GatewayError>;
    /// One true sentence about what it waits for.
    async fn why(&self, id: ResourceId) -> Result<Why, GatewayError>;
}
