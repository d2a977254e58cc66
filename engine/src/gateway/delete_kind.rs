//! Deleting a kind version.
//!
//! The look at its resources and the delete are not one step: a resource that is applied in between finds its kind gone when it is to be
//! claimed, waits, says so, and goes on when the version is published again. Nothing is lost by it, so applies, which are
//! many, do not lock their kinds against deletes, which are few.

use super::{EngineGateway, metadata, refused, unavailable};
use crate::gateway_api::{GatewayError, RequestContext};
use converge_domain::kind::KindCommand;
use converge_domain::{
    Address, AggregateId, AggregateType, AnyCommand, KindRef, Position, ResourceId, named,
};
use converge_event_store::CommandGroup;

/// Resources that a refusal lists.
const LISTED_MAX: usize = 10;
const PAGE: u32 = 1000;

impl EngineGateway {
    pub(super) async fn delete_kind_version(
        &self,
        kind: KindRef,
        context: &RequestContext,
    ) -> Result<Position, GatewayError> {
        self.core
            .registry
            .ensure(self.core.store.as_ref(), std::iter::once(kind.clone()))
            .await
            .map_err(unavailable)?;
        if self.core.registry.kind(&kind).is_none() {
            return Err(GatewayError::NotFound(format!("kind {kind} does not exist")));
        }
        let users = self.users_of(&kind).await?;
        if !users.is_empty() {
            let more = if users.len() > LISTED_MAX { " and more" } else { "" };
            let listed = users.into_iter().take(LISTED_MAX).collect::<Vec<_>>().join(", ");
            return Err(GatewayError::Conflict(format!(
                "kind {kind} is needed by {listed}{more}; delete these first"
            )));
        }
        let id = AggregateId(named(AggregateType::Kind.as_str(), &kind.to_string()));
        let address = Address { aggregate_type: AggregateType::Kind, id };
        let command = AnyCommand::Kind(KindCommand::Delete { at: self.core.now() });
        let group = CommandGroup {
            command_id: context.command_id,
            metadata: metadata(context),
            steps: vec![(address, command)],
            ..CommandGroup::default()
        };
        let committed = self.core.log.execute(group).await.map_err(refused)?;
        if let Err(error) = self.core.registry.reload(self.core.store.as_ref(), AggregateType::Kind).await {
            tracing::warn!(%error, "cannot reload the registry after a delete");
        }
        Ok(committed.position)
    }

    /// Resources that are of this version or have to be torn down under it, one more than are listed at most.
    async fn users_of(&self, kind: &KindRef) -> Result<Vec<String>, GatewayError> {
        let (mut users, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.core.store.names_of_kind(&kind.kind, &after, PAGE).await.map_err(unavailable)?;
            let Some((last, _)) = page.last() else { return Ok(users) };
            after.clone_from(last);
            let ids: Vec<ResourceId> = page.iter().map(|(_, id)| *id).collect();
            let states = self.core.resources_now(&ids).await.map_err(unavailable)?;
            for (name, id) in page {
                let needs = states.get(&id).is_some_and(|state| {
                    state.kind_version == kind.kind_version
                        || state.claimed_version == Some(kind.kind_version)
                });
                if needs {
                    users.push(format!("{}/{name}", kind.kind));
                }
                if users.len() > LISTED_MAX {
                    return Ok(users);
                }
            }
        }
    }
}
