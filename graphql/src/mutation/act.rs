//! What operators do by hand.

use super::targets::Targets;
use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::Position;
use async_graphql::{Context, ID, Object, SimpleObject};
use converge_domain::ResourceRef;
use converge_engine::gateway_api::{ActRequest, Action, RequestContext};

#[derive(Default)]
pub struct ActMutation;

/// An action that was accepted.
#[derive(SimpleObject)]
pub struct ActPayload {
    /// Of its last event; of the decision when nothing had to change.
    position: Position,
    results: Vec<ActResult>,
}

/// What an action did to one resource.
#[derive(SimpleObject)]
pub struct ActResult {
    id: ID,
    kind: String,
    name: String,
    /// False: it was so already.
    changed: bool,
    /// What to know, such as what may have leaked.
    notes: Vec<String>,
}

#[Object]
impl ActMutation {
    /// Sets resources aside: nothing is scheduled, no value flows in, their owners leave them out.
    async fn quarantine(
        &self,
        ctx: &Context<'_>,
        targets: Targets,
        #[graphql(default)] reason: String,
    ) -> Result<ActPayload, ApiError> {
        act(ctx, targets, Action::Quarantine, reason).await
    }

    /// Ends quarantines; what was applied meanwhile is reconciled.
    async fn release(
        &self,
        ctx: &Context<'_>,
        targets: Targets,
        #[graphql(default)] reason: String,
    ) -> Result<ActPayload, ApiError> {
        act(ctx, targets, Action::Release, reason).await
    }

    /// Has resources looked at again; Failed ones are tried again.
    async fn resync(
        &self,
        ctx: &Context<'_>,
        targets: Targets,
        #[graphql(default)] reason: String,
    ) -> Result<ActPayload, ApiError> {
        act(ctx, targets, Action::Resync, reason).await
    }

    /// Gives up teardowns that cannot end. What they managed may leak; the log keeps who said so, and why.
    async fn abandon(
        &self,
        ctx: &Context<'_>,
        targets: Targets,
        reason: String,
    ) -> Result<ActPayload, ApiError> {
        if reason.trim().is_empty() {
            return Err(ApiError::bad_request("`reason` must say why it is given up"));
        }
        act(ctx, targets, Action::Abandon, reason).await
    }

    /// Lets a held prune happen: exactly the removals that the condition `PruneHeld` shows under this digest.
    async fn confirm_prune(
        &self,
        ctx: &Context<'_>,
        kind: String,
        name: String,
        digest: String,
        #[graphql(default)] reason: String,
    ) -> Result<ActPayload, ApiError> {
        let targets = vec![ResourceRef::new(kind, name)];
        act_on(ctx, targets, Action::ConfirmPrune { digest }, reason).await
    }
}

async fn act(
    ctx: &Context<'_>,
    targets: Targets,
    action: Action,
    reason: String,
) -> Result<ActPayload, ApiError> {
    let targets = targets.resolve(ctx.data_unchecked::<ApiState>()).await?;
    act_on(ctx, targets, action, reason).await
}

async fn act_on(
    ctx: &Context<'_>,
    targets: Vec<ResourceRef>,
    action: Action,
    reason: String,
) -> Result<ActPayload, ApiError> {
    let state = ctx.data_unchecked::<ApiState>();
    let context = ctx.data_opt::<RequestContext>().cloned().unwrap_or_default();
    let answer = state.gateway.act(ActRequest { targets, action, reason }, context).await?;
    let result = |acted: converge_engine::gateway_api::Acted| ActResult {
        id: ID::from(acted.id.to_string()),
        kind: acted.reference.kind,
        name: acted.reference.name,
        changed: acted.changed,
        notes: acted.notes,
    };
    Ok(ActPayload {
        position: answer.position.into(),
        results: answer.acted.into_iter().map(result).collect(),
    })
}
