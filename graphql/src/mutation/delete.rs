//! Delete.

use crate::error::ApiError;
use crate::state::ApiState;
use crate::types::Position;
use async_graphql::{Context, ID, Object, SimpleObject};
use converge_domain::ResourceRef;
use converge_engine::gateway_api::{DeleteRequest, RequestContext};

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
}

#[Object]
impl DeleteMutation {
    /// Tears a resource down, with everything it owns, in reverse order.
    async fn delete(&self, ctx: &Context<'_>, kind: String, name: String) -> Result<DeletePayload, ApiError> {
        let state = ctx.data_unchecked::<ApiState>();
        let context = ctx.data_opt::<RequestContext>().cloned().unwrap_or_default();
        let request = DeleteRequest { targets: vec![ResourceRef::new(kind, name)], cascade: false };
        let mut answer = state.gateway.delete(request, context).await?;
        let going = answer.going.pop().ok_or_else(|| ApiError::unavailable("an empty answer"))?;
        Ok(DeletePayload {
            position: answer.position.into(),
            id: ID::from(going.id.to_string()),
            already: going.already,
            notes: going.notes,
        })
    }
}
