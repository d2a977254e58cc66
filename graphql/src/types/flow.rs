//! Edges and the values that flow over them, with where each value came from.

use super::{Json, Position};
use crate::error::ApiError;
use crate::loaders::{ProvenanceKey, ProvenanceLoader};
use async_graphql::{Context, ID, Object, SimpleObject};
use converge_domain::ResourceId;
use converge_domain::resource::{FieldFlow as Declared, Input, ResourceState};

/// An edge from a resource to what it needs first.
#[derive(SimpleObject)]
pub struct Edge {
    kind: String,
    name: String,
    /// Of the upstream; null while there is none of that name to lean on.
    id: Option<ID>,
    /// Another composer, or a user, holds the name of the child that was wanted here.
    conflicted: bool,
    values: Vec<FieldFlow>,
}

impl Edge {
    /// An edge of `dependent`.
    pub fn new(dependent: &ResourceState, edge: &converge_domain::resource::Edge) -> Self {
        let exists = !edge.unbound && !edge.conflicted;
        Self {
            kind: edge.upstream_ref.kind.clone(),
            name: edge.upstream_ref.name.clone(),
            id: exists.then(|| ID::from(edge.upstream.to_string())),
            conflicted: edge.conflicted,
            values: edge.values.iter().map(|flow| FieldFlow::new(dependent, edge.upstream, flow)).collect(),
        }
    }
}

/// A value that flows along an edge.
pub struct FieldFlow {
    dependent: ResourceId,
    /// Of the dependent's state that tells of it.
    sequence: u64,
    flow: Declared,
    /// What has flowed.
    input: Option<Input>,
    /// Why nothing has.
    reason: Option<String>,
}

impl FieldFlow {
    fn new(dependent: &ResourceState, upstream: ResourceId, flow: &Declared) -> Self {
        let is_it = |input: &&Input| {
            input.field == flow.dependent_field
                && input.source == upstream
                && input.source_field == flow.source_field
        };
        let waits = dependent
            .unresolved
            .iter()
            .find(|held| held.field == flow.dependent_field && held.source_field == flow.source_field);
        Self {
            dependent: dependent.id().id,
            sequence: dependent.sequence,
            flow: flow.clone(),
            input: dependent.inputs.iter().find(is_it).cloned(),
            reason: waits.map(|held| held.reason.clone()),
        }
    }
}

#[Object]
impl FieldFlow {
    /// Where in the spec it goes, as a JSON Pointer.
    async fn dependent_field(&self) -> &str {
        &self.flow.dependent_field
    }

    /// Where in the upstream's status it comes from, as a JSON Pointer.
    async fn source_field(&self) -> &str {
        &self.flow.source_field
    }

    /// The value that has flowed last; null, with `flowed` false, before any has.
    async fn value(&self) -> Json {
        Json(self.input.as_ref().map_or(serde_json::Value::Null, |input| (*input.value).clone()))
    }

    /// Whether a value has flowed: null is a value too.
    async fn flowed(&self) -> bool {
        self.input.is_some()
    }

    /// The upstream's sequence that it was read at.
    async fn source_sequence(&self) -> Option<Position> {
        self.input.as_ref().map(|input| Position(input.source_sequence))
    }

    /// Why there is no value, or none that is current.
    async fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The position of the event that gave this value. Read from the dependent's stream only when asked for; null when it lies
    /// more than 5,000 events of the dependent back.
    #[graphql(complexity = "20")]
    async fn position(&self, ctx: &Context<'_>) -> Result<Option<Position>, ApiError> {
        let Some(input) = &self.input else { return Ok(None) };
        let key = ProvenanceKey {
            dependent: self.dependent,
            sequence: self.sequence,
            field: input.field.clone(),
            source: input.source,
            source_field: input.source_field.clone(),
            source_sequence: input.source_sequence,
        };
        let position = ctx.data_unchecked::<ProvenanceLoader>().load_one(key).await?;
        Ok(position.map(Into::into))
    }
}
