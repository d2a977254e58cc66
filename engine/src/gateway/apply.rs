//! Applying documents: all or nothing, a verb each.

use super::check::{Findings, Kinds};
use super::plan::{Planned, plan};
use super::{EngineGateway, metadata, refused, unavailable};
use crate::gateway_api::{Applied, ApplyAnswer, GatewayError, RequestContext, Verb, Violation};
use converge_domain::document::Document;
use converge_domain::resource::{ResourceError, ResourceEvent};
use converge_domain::{AggregateType, AnyEvent, DomainError, KindRef};
use converge_event_store::{CommandGroup, Committed, ExecuteError, StepResult};

/// Most documents of one request.
const DOCUMENTS_MAX: usize = 1000;
/// Times that names are resolved again after another writer took one in between.
const NAME_RETRIES: usize = 5;

impl EngineGateway {
    pub(super) async fn apply_documents(
        &self,
        documents: Vec<Document>,
        context: &RequestContext,
    ) -> Result<ApplyAnswer, GatewayError> {
        if documents.len() > DOCUMENTS_MAX {
            return Err(GatewayError::Validation(vec![Violation {
                document: DOCUMENTS_MAX,
                subject: "request".to_owned(),
                pointer: "/documents".to_owned(),
                message: format!("at most {DOCUMENTS_MAX} documents go in one request; split it"),
            }]));
        }
        self.core
            .registry
            .know(self.core.store.as_ref(), &kinds_of(&documents))
            .await
            .map_err(unavailable)?;
        let mut findings = Findings::default();
        let kinds = Kinds::new(&self.core.registry, &documents, &mut findings);
        findings.check(&kinds, &documents);
        if !findings.violations.is_empty() {
            return Err(GatewayError::Validation(findings.violations));
        }
        for _ in 0..NAME_RETRIES {
            let planned = plan(&self.core, &kinds, &documents, self.core.now()).await?;
            let group = CommandGroup {
                command_id: context.command_id,
                metadata: metadata(context),
                steps: planned.iter().map(|step| (step.address, step.command.clone())).collect(),
                ..CommandGroup::default()
            };
            match self.core.log.execute(group).await {
                Ok(committed) => {
                    self.learn(&planned).await?;
                    return Ok(answer(&planned, &committed, &findings));
                }
                Err(ExecuteError::NameTaken) => {}
                Err(ExecuteError::Domain { step, error }) => {
                    return Err(self.explained(&planned, step, error).await);
                }
                Err(error) => return Err(refused(error)),
            }
        }
        Err(GatewayError::Conflict("other writers keep taking the same names; try again".to_owned()))
    }

    /// What was just published is known here before the answer goes out: the next request may build on it.
    async fn learn(&self, planned: &[Planned]) -> Result<(), GatewayError> {
        for aggregate_type in [AggregateType::Kind, AggregateType::ProviderConfig] {
            if planned.iter().any(|step| step.address.aggregate_type == aggregate_type) {
                let store = self.core.store.as_ref();
                self.core.registry.reload(store, aggregate_type).await.map_err(unavailable)?;
            }
        }
        Ok(())
    }

    /// A domain refusal in the words of the document it hit.
    async fn explained(&self, planned: &[Planned], step: usize, error: DomainError) -> GatewayError {
        let Some(step) = planned.get(step) else { return GatewayError::Conflict(error.to_string()) };
        let subject = if step.kind.is_empty() {
            format!("{}/{}", step.document_type, step.name)
        } else {
            format!("{}/{}", step.kind, step.name)
        };
        match &error {
            DomainError::Resource(ResourceError::Owned { owner }) => {
                let owner = self.call_name(*owner).await;
                GatewayError::Conflict(format!(
                    "{subject} is owned by {owner}; change {owner}'s spec instead"
                ))
            }
            DomainError::Kind(error) => GatewayError::Conflict(error.to_string()),
            error => GatewayError::Conflict(format!("{subject}: {error}")),
        }
    }
}

/// The kind versions that a request names.
fn kinds_of(documents: &[Document]) -> Vec<KindRef> {
    let mut kinds: Vec<KindRef> = documents
        .iter()
        .filter_map(|document| match document {
            Document::Resource(resource) => Some(KindRef::new(&resource.kind, resource.kind_version)),
            Document::ProviderConfig(config) => Some(KindRef::new(&config.kind, config.kind_version)),
            Document::Kind(_) | Document::ReactorBinding(_) => None,
        })
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn answer(planned: &[Planned], committed: &Committed, findings: &Findings) -> ApplyAnswer {
    let mut applied: Vec<(usize, Applied)> = planned
        .iter()
        .zip(&committed.steps)
        .map(|(step, result)| {
            let resource = result.state.as_resource();
            let applied = Applied {
                document_type: step.document_type.to_owned(),
                kind: step.kind.clone(),
                name: step.name.clone(),
                id: step.address.id,
                verb: verb(result),
                revision: resource.map(|state| state.revision),
                generation: resource.map(|state| state.generation),
                warnings: findings.warnings.get(&step.document).cloned().unwrap_or_default(),
            };
            (step.document, applied)
        })
        .collect();
    applied.sort_by_key(|(document, _)| *document);
    ApplyAnswer {
        position: committed.position,
        applied: applied.into_iter().map(|(_, applied)| applied).collect(),
    }
}

fn verb(result: &StepResult) -> Verb {
    let Some(first) = result.events.first() else { return Verb::Unchanged };
    let created = match &first.event {
        AnyEvent::Resource(event) => matches!(event, ResourceEvent::Created(_)),
        _ => first.sequence.0 == 1,
    };
    if created { Verb::Created } else { Verb::Configured }
}
