//! Applying documents: all or nothing, a verb each.

use super::check::{Findings, Kinds};
use super::plan::{Plan, Planned, plan};
use super::{EngineGateway, metadata, refused, unavailable};
use crate::gateway_api::{Applied, ApplyAnswer, GatewayError, RequestContext, Verb, Violation};
use converge_domain::document::Document;
use converge_domain::resource::{ResourceError, ResourceEvent};
use converge_domain::{AggregateType, AnyEvent, DomainError, KindRef};
use converge_event_store::{CommandGroup, Committed, ExecuteError, StepResult};

/// Most documents of one request.
const DOCUMENTS_MAX: usize = 1000;
/// Times that a request is planned again after another writer changed what it rests on.
const PLANS_MAX: usize = 5;

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
        let wanted = documents.iter().filter_map(kind_of);
        self.core.registry.ensure(self.core.store.as_ref(), wanted).await.map_err(unavailable)?;
        let mut findings = Findings::default();
        let kinds = Kinds::new(&self.core.registry, &documents, &mut findings);
        findings.check(&kinds, &documents);
        if !findings.violations.is_empty() {
            return Err(GatewayError::Validation(findings.violations));
        }
        for _ in 0..PLANS_MAX {
            let Plan { steps: planned, guards, new } =
                plan(&self.core, &kinds, &documents, self.core.now()).await?;
            let group = CommandGroup {
                command_id: context.command_id,
                metadata: metadata(context),
                steps: planned.iter().map(|step| (step.address, step.command.clone())).collect(),
                guards,
                new,
                ..CommandGroup::default()
            };
            match self.core.log.execute(group).await {
                Ok(committed) => {
                    self.follow_own_apply(&documents).await;
                    return Ok(answer(&planned, &committed, &findings));
                }
                // The world moved under the plan: plan again.
                Err(ExecuteError::NameTaken | ExecuteError::Conflict { .. }) => {}
                // What held the name is gone meanwhile: the next plan makes a new one.
                Err(ExecuteError::Domain {
                    error: DomainError::Resource(ResourceError::NotFound), ..
                }) => {}
                Err(ExecuteError::Domain { step, error }) => {
                    return Err(self.explained(&planned, step, error).await);
                }
                Err(error) => return Err(refused(error)),
            }
        }
        Err(GatewayError::Conflict("other writers keep changing the same resources; try again".to_owned()))
    }

    /// Whoever sees this answer and applies again is judged by the manifests and configs just applied, not by those that
    /// the tail has not replaced yet.
    async fn follow_own_apply(&self, documents: &[Document]) {
        for (aggregate_type, applied) in [
            (AggregateType::Kind, documents.iter().any(|document| matches!(document, Document::Kind(_)))),
            (
                AggregateType::ProviderConfig,
                documents.iter().any(|document| matches!(document, Document::ProviderConfig(_))),
            ),
        ] {
            if applied
                && let Err(error) = self.core.registry.reload(self.core.store.as_ref(), aggregate_type).await
            {
                // It is committed, so the answer stays: the tail reloads until it can.
                tracing::warn!(%error, "cannot reload the registry after an apply");
            }
        }
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

/// The kind version that a document is judged by, where another document defines it.
fn kind_of(document: &Document) -> Option<KindRef> {
    match document {
        Document::Resource(resource) => Some(KindRef::new(&resource.kind, resource.kind_version)),
        Document::ProviderConfig(config) => Some(KindRef::new(&config.kind, config.kind_version)),
        Document::Kind(_) | Document::ReactorBinding(_) => None,
    }
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
