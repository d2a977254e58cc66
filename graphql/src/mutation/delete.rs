//! Delete.

use super::targets::Targets;
use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::Position;
use async_graphql::{Context, ID, Object, SimpleObject};
use converge_domain::{KindRef, ResourceRef};
use converge_engine::gateway_api::{DeleteAnswer, DeleteRequest, Going, RequestContext};

#[derive(Default)]
pub struct DeleteMutation;

/// An accepted delete.
#[derive(SimpleObject)]
pub struct DeletePayload {
    /// Of its event; of the decision when it was Deleting already.
    position: Position,
    id: ID,
    /// It was Deleting already.
    already: bool,
    /// What to know, such as that a composer will make it anew.
    notes: Vec<String>,
    /// Everything that goes: first what was asked for, then dependents in other roots that the cascade took along.
    going: Vec<GoingResource>,
}

/// An accepted delete of many.
#[derive(SimpleObject)]
pub struct DeleteManyPayload {
    /// Of the last event.
    position: Position,
    /// First what was asked for, then dependents in other roots that the cascade took along.
    going: Vec<GoingResource>,
}

/// A resource whose deletion was accepted.
#[derive(SimpleObject)]
pub struct GoingResource {
    id: ID,
    kind: String,
    name: String,
    already: bool,
    notes: Vec<String>,
}

impl From<Going> for GoingResource {
    fn from(going: Going) -> Self {
        Self {
            id: ID::from(going.id.to_string()),
            kind: going.reference.kind,
            name: going.reference.name,
            already: going.already,
            notes: going.notes,
        }
    }
}

#[Object]
impl DeleteMutation {
    /// Tears a resource down, with everything it owns, in reverse order. Live dependents in other roots refuse it, unless
    /// `cascade` takes them along.
    async fn delete(
        &self,
        ctx: &Context<'_>,
        kind: String,
        name: String,
        #[graphql(default)] cascade: bool,
    ) -> Result<DeletePayload, ApiError> {
        let answer = delete(ctx, vec![ResourceRef::new(kind, name)], cascade).await?;
        let first = answer.going.first().ok_or_else(|| ApiError::unavailable("the answer was empty"))?;
        Ok(DeletePayload {
            position: answer.position.into(),
            id: ID::from(first.id.to_string()),
            already: first.already,
            notes: first.notes.clone(),
            going: answer.going.into_iter().map(Into::into).collect(),
        })
    }

    /// Removes a kind version that no resource needs any more; the position of its event.
    async fn delete_kind(
        &self,
        ctx: &Context<'_>,
        kind: String,
        kind_version: i32,
    ) -> Result<Position, ApiError> {
        let version = u16::try_from(kind_version)
            .map_err(|_| ApiError::bad_request("`kindVersion` must be between 1 and 32767"))?;
        let state = ctx.data_unchecked::<ApiState>();
        let context = ctx.data_opt::<RequestContext>().cloned().unwrap_or_default();
        Ok(state.gateway.delete_kind(KindRef::new(kind, version), context).await?.into())
    }

    /// The same for many: all of them or none.
    async fn delete_many(
        &self,
        ctx: &Context<'_>,
        targets: Targets,
        #[graphql(default)] cascade: bool,
    ) -> Result<DeleteManyPayload, ApiError> {
        let targets = targets.resolve(ctx.data_unchecked::<ApiState>()).await?;
        let answer = delete(ctx, targets, cascade).await?;
        Ok(DeleteManyPayload {
            position: answer.position.into(),
            going: answer.going.into_iter().map(Into::into).collect(),
        })
    }
}

async fn delete(
    ctx: &Context<'_>,
    targets: Vec<ResourceRef>,
    cascade: bool,
) -> Result<DeleteAnswer, ApiError> {
    let state = ctx.data_unchecked::<ApiState>();
    let context = ctx.data_opt::<RequestContext>().cloned().unwrap_or_default();
    Ok(state.gateway.delete(DeleteRequest { targets, cascade }, context).await?)
}
