//! An engine that only pretends: it answers by what it is asked about.

use async_trait::async_trait;
use converge_domain::document::Document;
use converge_domain::resource::ResourceState;
use converge_domain::{AggregateId, Generation, KindRef, Position, ResourceId, ResourceRef, Revision};
use converge_engine::gateway_api::{
    ActAnswer, ActRequest, Acted, Applied, ApplyAnswer, DeleteAnswer, DeleteRequest, Gateway, GatewayError,
    Going, RequestContext, Verb, Violation, Why,
};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

#[derive(Default)]
pub struct FakeGateway {
    pub applied: Mutex<Vec<(Vec<Document>, RequestContext)>>,
    pub deleted: Mutex<Vec<DeleteRequest>>,
    pub acted: Mutex<Vec<ActRequest>>,
}

fn trouble(name: &str) -> Option<GatewayError> {
    match name {
        "conflict" => Some(GatewayError::Conflict("owned by zone/z".into())),
        "unavailable" => Some(GatewayError::Unavailable("the queue is full".into())),
        "missing" => Some(GatewayError::NotFound("no such resource".into())),
        "invalid" => Some(GatewayError::Validation(vec![Violation {
            document: 0,
            subject: "vpc/invalid".into(),
            pointer: "/spec/cidr".into(),
            message: "is required".into(),
        }])),
        _ => None,
    }
}

#[async_trait]
impl Gateway for FakeGateway {
    async fn apply(
        &self,
        documents: Vec<Document>,
        context: RequestContext,
    ) -> Result<ApplyAnswer, GatewayError> {
        let mut applied = Vec::new();
        for document in &documents {
            let Document::Resource(resource) = document else { continue };
            if let Some(error) = trouble(&resource.name) {
                return Err(error);
            }
            applied.push(Applied {
                document_type: "resource".into(),
                kind: resource.kind.clone(),
                name: resource.name.clone(),
                id: AggregateId(Uuid::nil()),
                verb: Verb::Created,
                revision: Some(Revision(1)),
                generation: Some(Generation(u64::MAX >> 1)),
                warnings: vec!["stored, not built yet".into()],
            });
        }
        self.applied.lock().unwrap().push((documents, context));
        Ok(ApplyAnswer { position: Position(42), applied })
    }

    async fn delete(&self, request: DeleteRequest, _: RequestContext) -> Result<DeleteAnswer, GatewayError> {
        self.deleted.lock().unwrap().push(request.clone());
        let mut going = Vec::new();
        for reference in request.targets {
            if let Some(error) = trouble(&reference.name) {
                return Err(error);
            }
            let notes = vec!["its composer makes it anew".into()];
            going.push(Going { id: ResourceId(Uuid::nil()), reference, already: true, notes });
        }
        Ok(DeleteAnswer { position: Position(43), going })
    }

    async fn delete_kind(&self, kind: KindRef, _: RequestContext) -> Result<Position, GatewayError> {
        trouble(&kind.kind).map_or(Ok(Position(45)), Err)
    }

    async fn act(&self, request: ActRequest, _: RequestContext) -> Result<ActAnswer, GatewayError> {
        self.acted.lock().unwrap().push(request.clone());
        let mut acted = Vec::new();
        for reference in request.targets {
            if let Some(error) = trouble(&reference.name) {
                return Err(error);
            }
            acted.push(Acted { id: ResourceId(Uuid::nil()), reference, changed: true, notes: vec![] });
        }
        Ok(ActAnswer { position: Position(44), acted })
    }

    async fn resource(&self, _: &ResourceRef) -> Result<Option<Arc<ResourceState>>, GatewayError> {
        Ok(None)
    }

    async fn why(&self, id: ResourceId) -> Result<Why, GatewayError> {
        Ok(Why { sentence: format!("{id} waits for a worker.") })
    }
}
