//! Requesting a deletion.

use super::{EngineGateway, metadata, refused, unavailable};
use crate::engine::resource_address;
use crate::gateway_api::{DeleteAnswer, GatewayError, Going, RequestContext};
use converge_domain::resource::{ResourceCommand, ResourceError, ResourceState};
use converge_domain::{AnyCommand, DomainError, ResourceId, ResourceRef};
use converge_event_store::{CommandGroup, ExecuteError};

/// Dependents in other roots that a refusal lists.
const LISTED_MAX: usize = 20;

impl EngineGateway {
    pub(super) async fn delete_one(
        &self,
        target: ResourceRef,
        context: &RequestContext,
    ) -> Result<DeleteAnswer, GatewayError> {
        let Some(state) = self.by_name(&target).await? else {
            return Err(GatewayError::NotFound(format!("{target} does not exist")));
        };
        let id = state.id().id;
        let already = state.deletion.is_some();
        if !already {
            self.refuse_live_dependents(&target, &state).await?;
        }
        let command = ResourceCommand::RequestDeletion { by_name: true, at: self.core.now() };
        let group = CommandGroup {
            command_id: context.command_id,
            metadata: metadata(context),
            steps: vec![(resource_address(id), AnyCommand::Resource(command))],
            ..CommandGroup::default()
        };
        match self.core.log.execute(group).await {
            Ok(committed) => Ok(DeleteAnswer {
                position: committed.position,
                going: vec![Going { id, reference: target, already, notes: self.notes(&state).await }],
            }),
            Err(ExecuteError::Domain { error: DomainError::Resource(ResourceError::NotFound), .. }) => {
                Err(GatewayError::NotFound(format!("{target} does not exist")))
            }
            Err(ExecuteError::Domain { error, .. }) => {
                Err(GatewayError::Conflict(format!("{target}: {error}")))
            }
            Err(error) => Err(refused(error)),
        }
    }

    /// A live resource of another root that depends on the target would lose its upstream.
    async fn refuse_live_dependents(
        &self,
        target: &ResourceRef,
        state: &ResourceState,
    ) -> Result<(), GatewayError> {
        let store = &self.core.store;
        let dependents = store.dependents(state.id().id, None, 1000).await.map_err(unavailable)?;
        let root: ResourceId = state.id().root();
        let dependents = self.core.resources_now(&dependents).await.map_err(unavailable)?;
        let mut foreign: Vec<String> = dependents
            .values()
            .filter(|dependent| dependent.id().root() != root && dependent.deletion.is_none())
            .map(|dependent| dependent.id().reference().to_string())
            .collect();
        if foreign.is_empty() {
            return Ok(());
        }
        foreign.sort();
        let more = foreign.len().saturating_sub(LISTED_MAX);
        foreign.truncate(LISTED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Err(GatewayError::Conflict(format!(
            "{target} is needed by {}{more}; delete these first",
            foreign.join(", ")
        )))
    }

    async fn notes(&self, state: &ResourceState) -> Vec<String> {
        match state.id().owner() {
            Some(owner) if state.dropped.is_none() => {
                let owner = self.call_name(owner).await;
                vec![format!(
                    "{owner} still wants it and will make it anew; change {owner}'s spec to be rid of it"
                )]
            }
            _ => vec![],
        }
    }
}
