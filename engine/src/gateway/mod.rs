//! The engine's front door: applies, deletes and questions, checked before anything is stored.

mod act;
mod apply;
mod check;
mod delete;
mod delete_kind;
mod plan;
mod targets;

use crate::engine::Core;
use crate::gateway_api::{
    ActAnswer, ActRequest, ApplyAnswer, DeleteAnswer, DeleteRequest, Gateway, GatewayError, RequestContext,
    Why,
};
use async_trait::async_trait;
use converge_domain::document::Document;
use converge_domain::resource::ResourceState;
use converge_domain::{KindRef, Position, ResourceId, ResourceRef};
use converge_event_store::{ExecuteError, Metadata, StoreError};
use std::sync::Arc;

/// Implements [`Gateway`].
pub(crate) struct EngineGateway {
    pub(crate) core: Arc<Core>,
}

impl EngineGateway {
    pub fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The live resource of that name.
    pub(crate) async fn by_name(
        &self,
        target: &ResourceRef,
    ) -> Result<Option<Arc<ResourceState>>, GatewayError> {
        let holders = self.core.store.names(std::slice::from_ref(target)).await.map_err(unavailable)?;
        match holders.first() {
            Some((_, id)) => self.by_id(ResourceId(id.0)).await,
            None => Ok(None),
        }
    }

    /// The live resource of that id.
    pub(crate) async fn by_id(&self, id: ResourceId) -> Result<Option<Arc<ResourceState>>, GatewayError> {
        self.core.resource_now(id).await.map_err(unavailable)
    }

    /// `kind/name` of a resource, for messages.
    pub(crate) async fn call_name(&self, id: ResourceId) -> String {
        match self.by_id(id).await {
            Ok(Some(state)) => state.id().reference().to_string(),
            _ => id.to_string(),
        }
    }
}

#[async_trait]
impl Gateway for EngineGateway {
    async fn apply(
        &self,
        documents: Vec<Document>,
        context: RequestContext,
    ) -> Result<ApplyAnswer, GatewayError> {
        self.apply_documents(documents, &context).await
    }

    async fn delete(
        &self,
        request: DeleteRequest,
        context: RequestContext,
    ) -> Result<DeleteAnswer, GatewayError> {
        self.delete_all(request, &context).await
    }

    async fn delete_kind(&self, kind: KindRef, context: RequestContext) -> Result<Position, GatewayError> {
        self.delete_kind_version(kind, &context).await
    }

    async fn act(&self, request: ActRequest, context: RequestContext) -> Result<ActAnswer, GatewayError> {
        self.act_on(request, &context).await
    }

    async fn resource(&self, target: &ResourceRef) -> Result<Option<Arc<ResourceState>>, GatewayError> {
        self.by_name(target).await
    }

    async fn why(&self, id: ResourceId) -> Result<Why, GatewayError> {
        self.explain(id).await
    }
}

/// Who asked, as it stands in the log.
fn metadata(context: &RequestContext) -> Arc<Metadata> {
    let mut metadata = Metadata::from([("actor".to_owned(), context.actor.clone())]);
    if !context.request_id.is_empty() {
        metadata.insert("request_id".to_owned(), context.request_id.clone());
        metadata.insert("correlation_id".to_owned(), context.request_id.clone());
    }
    Arc::new(metadata)
}

/// The same, with what the operator said about it.
fn metadata_of(context: &RequestContext, reason: &str) -> Arc<Metadata> {
    let mut metadata = metadata(context);
    if !reason.is_empty() {
        Arc::make_mut(&mut metadata).insert("reason".to_owned(), reason.to_owned());
    }
    metadata
}

fn unavailable(error: StoreError) -> GatewayError {
    GatewayError::Unavailable(error.to_string())
}

/// Refusals that are not about one document.
fn refused(error: ExecuteError) -> GatewayError {
    match error {
        ExecuteError::Domain { error, .. } => GatewayError::Conflict(error.to_string()),
        ExecuteError::NameTaken | ExecuteError::Conflict { .. } | ExecuteError::Duplicate => {
            GatewayError::Conflict(error.to_string())
        }
        ExecuteError::Overloaded | ExecuteError::Closed | ExecuteError::Store(_) => {
            GatewayError::Unavailable(error.to_string())
        }
    }
}
