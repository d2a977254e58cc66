//! What operators do by hand, all targets or none.

use super::{EngineGateway, metadata_of, refused};
use crate::engine::resource_address;
use crate::gateway_api::{ActAnswer, ActRequest, Acted, Action, GatewayError, RequestContext};
use converge_domain::resource::{Reaction, ResourceCommand, ResourceState};
use converge_domain::{AnyCommand, DomainError, Timestamp};
use converge_event_store::{CommandGroup, ExecuteError};

impl EngineGateway {
    pub(super) async fn act_on(
        &self,
        request: ActRequest,
        context: &RequestContext,
    ) -> Result<ActAnswer, GatewayError> {
        let targets = self.targets(&request.targets).await?;
        let at = self.core.now();
        let commands = targets.iter().map(|state| {
            let command = self.command(state, &request.action, &request.reason, at);
            (resource_address(state.id().id), AnyCommand::Resource(command))
        });
        let group = CommandGroup {
            command_id: context.command_id,
            metadata: metadata_of(context, &request.reason),
            steps: commands.collect(),
            ..CommandGroup::default()
        };
        match self.core.log.execute(group).await {
            Ok(committed) => {
                let acted = targets.iter().zip(&committed.steps).map(|(before, step)| Acted {
                    id: before.id().id,
                    reference: before.id().reference(),
                    changed: !step.events.is_empty(),
                    notes: notes(before, &request.action),
                });
                Ok(ActAnswer { position: committed.position, acted: acted.collect() })
            }
            Err(ExecuteError::Domain { step, error: DomainError::Resource(error) }) => {
                let subject = targets.get(step).map(|state| state.id().reference());
                Err(super::targets::refusal(subject.as_ref(), &error))
            }
            Err(error) => Err(refused(error)),
        }
    }

    fn command(
        &self,
        state: &ResourceState,
        action: &Action,
        reason: &str,
        at: Timestamp,
    ) -> ResourceCommand {
        let reason = reason.to_owned();
        match action {
            Action::Quarantine => ResourceCommand::Quarantine { reason, at },
            Action::Release => ResourceCommand::Release { reason, at },
            Action::Resync => {
                let entry = self.core.registry.kind(&state.kind_ref());
                let recomposes = entry.and_then(|entry| entry.manifest.knobs.resync_recomposes);
                ResourceCommand::Resync { recomposes: recomposes.unwrap_or(false), reason, at }
            }
            Action::Abandon => ResourceCommand::Abandon { reason, at },
            Action::ConfirmPrune { digest } => {
                ResourceCommand::ConfirmPrune { digest: digest.clone(), reason, at }
            }
        }
    }
}

/// What the operator should know.
fn notes(before: &ResourceState, action: &Action) -> Vec<String> {
    match action {
        Action::Abandon if !before.finalizers.is_empty() => {
            vec![format!(
                "its teardown was given up: what {} stands for may still exist",
                before.finalizers.join(", ")
            )]
        }
        Action::Quarantine => before
            .claim
            .iter()
            .filter(|claim| claim.reaction != Reaction::Rollup)
            .map(|claim| format!("worker {} still runs a task of it; its outcome is recorded", claim.worker))
            .collect(),
        _ => vec![],
    }
}
