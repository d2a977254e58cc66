//! A resource, as its folded state tells.

use super::{Condition, DateTime, Edge, Event, Json, Position, ResourceConnection, connection::decode_key};
use crate::consistency::note;
use crate::directory::Named;
use crate::error::ApiError;
use crate::limits::{PAGE_MAX, RESOURCE_EVENTS_MAX, page_size, weight};
use crate::loaders::{ByIdLoader, ChildrenKey, ChildrenLoader, RecentEventsKey, RecentEventsLoader};
use crate::state::ApiState;
use async_graphql::{Context, Enum, ID, Object, SimpleObject};
use converge_domain::resource::{Reaction, ResourceState};
use converge_engine::gateway_api::GatewayError;
use std::sync::Arc;

/// The one word for where a resource is. First match wins, from the top.
#[derive(Enum, Clone, Copy, PartialEq, Eq, Debug)]
#[graphql(rename_items = "PascalCase", remote = "converge_domain::resource::Phase")]
pub enum Phase {
    /// Its deletion was requested.
    Deleting,
    /// An operator set it aside.
    Quarantined,
    /// Its own reconcile failed for the live spec.
    Failed,
    /// Its composer dropped it; a grace period runs.
    Orphaned,
    /// Reconciled, but unhealthy, or something below it is.
    Degraded,
    /// Reconciled and healthy, with everything below it.
    Ready,
    /// Everything else.
    Reconciling,
}

/// One row of desired state, with what became of it.
#[derive(Clone, Debug)]
pub struct Resource {
    state: Arc<ResourceState>,
}

impl Resource {
    /// A view of `state`, which must be of a created resource.
    pub const fn new(state: Arc<ResourceState>) -> Self {
        Self { state }
    }
}

/// The last failure of a resource's own reaction.
#[derive(SimpleObject)]
pub struct Failure {
    reaction: &'static str,
    message: String,
    /// No further attempt is made for this generation.
    terminal: bool,
    attempt: i32,
    at: DateTime,
}

/// A task in a worker's hands.
#[derive(SimpleObject)]
pub struct Claim {
    reaction: &'static str,
    worker: String,
    epoch: Position,
    claim_id: ID,
    claimed_at: DateTime,
    deadline_at: Option<DateTime>,
}

const fn reaction_word(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Work => "work",
        Reaction::Compose => "compose",
        Reaction::Rollup => "rollup",
        Reaction::Teardown => "teardown",
        Reaction::Observe => "observe",
    }
}

#[Object]
impl Resource {
    pub async fn id(&self) -> ID {
        ID::from(self.state.id().id.to_string())
    }

    async fn kind(&self) -> &str {
        &self.state.id().kind
    }

    async fn kind_version(&self) -> i32 {
        i32::from(self.state.kind_version)
    }

    async fn name(&self) -> &str {
        &self.state.id().name
    }

    async fn labels(&self) -> Result<Json, ApiError> {
        Json::of(&self.state.labels)
    }

    /// As declared, without flowed values.
    async fn spec(&self) -> Json {
        Json((*self.state.spec).clone())
    }

    /// As a worker sees it: flowed values laid over declared ones.
    async fn effective_spec(&self) -> Json {
        Json(self.state.effective_spec())
    }

    async fn status(&self) -> Json {
        Json(self.state.visible_status())
    }

    async fn phase(&self) -> Phase {
        self.state.phase().into()
    }

    async fn conditions(&self) -> Vec<Condition> {
        self.state.conditions().into_iter().map(Into::into).collect()
    }

    /// Rises with every effective change of the spec.
    async fn generation(&self) -> Position {
        Position(self.state.generation.0)
    }

    /// The generation the world was last reconciled to.
    async fn synced_generation(&self) -> Position {
        Position(self.state.synced_gen.0)
    }

    /// Rises with every declared edit.
    async fn revision(&self) -> Position {
        Position(self.state.revision.0)
    }

    /// Rises with every claim.
    async fn epoch(&self) -> Position {
        Position(self.state.epoch.0)
    }

    /// The composer that made it; null for a top-level resource.
    async fn owner(&self, ctx: &Context<'_>) -> Result<Option<Resource>, ApiError> {
        let Some(owner) = self.state.id().owner() else { return Ok(None) };
        let loaded = ctx.data_unchecked::<ByIdLoader>().load_one(owner).await?;
        Ok(loaded.map(|(position, resource)| {
            note(ctx, position);
            resource
        }))
    }

    /// The top-level resource above, or itself.
    async fn root(&self) -> ID {
        ID::from(self.state.id().root().to_string())
    }

    async fn provider_config_ref(&self) -> Option<&str> {
        self.state.provider_config_ref.as_deref()
    }

    async fn deletion_protection(&self) -> bool {
        self.state.deletion_protection
    }

    /// What must be Ready before it, with the values that flow.
    async fn depends_on(&self) -> Vec<Edge> {
        self.state.edges.iter().map(|edge| Edge::new(&self.state, edge)).collect()
    }

    /// Why an operator set it aside; null when none did.
    async fn quarantine_reason(&self) -> Option<&str> {
        self.state.quarantine.as_ref().map(|quarantine| quarantine.reason.as_str())
    }

    /// When the grace window of a child that its composer dropped ends.
    async fn kept_until(&self) -> Option<DateTime> {
        self.state.dropped.as_ref().and_then(|mark| mark.kept_until).map(DateTime)
    }

    /// Direct children in (kind, name) order.
    #[graphql(complexity = "weight(first, 100, child_complexity)")]
    async fn children(
        &self,
        ctx: &Context<'_>,
        #[graphql(default_with = "Some(100)")] first: Option<i32>,
        after: Option<String>,
    ) -> Result<ResourceConnection, ApiError> {
        let limit = page_size(first, 100, PAGE_MAX)?;
        let after = decode_key(after.as_deref())?;
        let key = ChildrenKey { owner: self.state.id().id, after: after.clone(), limit };
        let answer = ctx
            .data_unchecked::<ChildrenLoader>()
            .load_one(key)
            .await?
            .ok_or_else(|| ApiError::unavailable("the children were not loaded"))?;
        note(ctx, answer.position);
        Ok(ResourceConnection::new(answer, after.as_ref()))
    }

    /// Transient attempts of the current decision that failed.
    async fn attempts(&self) -> i32 {
        i32::try_from(self.state.attempts).unwrap_or(i32::MAX)
    }

    async fn last_failure(&self) -> Option<Failure> {
        self.state.last_failure.as_ref().map(|failure| Failure {
            reaction: reaction_word(failure.reaction),
            message: failure.message.clone(),
            terminal: failure.terminal,
            attempt: i32::try_from(failure.attempt).unwrap_or(i32::MAX),
            at: DateTime(failure.at),
        })
    }

    /// The task under way, if one is.
    async fn claim(&self) -> Option<Claim> {
        self.state.claim.as_ref().map(|claim| Claim {
            reaction: reaction_word(claim.reaction),
            worker: claim.worker.clone(),
            epoch: Position(claim.epoch.0),
            claim_id: ID::from(claim.claim_id.to_string()),
            claimed_at: DateTime(claim.claimed_at),
            deadline_at: claim.deadline_at.map(DateTime),
        })
    }

    /// Not tried again before this instant.
    async fn retry_at(&self) -> Option<DateTime> {
        self.state.retry_at.map(DateTime)
    }

    async fn created_at(&self) -> DateTime {
        DateTime(self.state.created_at)
    }

    async fn updated_at(&self) -> DateTime {
        DateTime(self.state.updated_at)
    }

    /// One sentence about what it waits for; empty when Ready.
    #[graphql(complexity = "10")]
    async fn why(&self, ctx: &Context<'_>) -> Result<String, ApiError> {
        if self.state.phase() == converge_domain::resource::Phase::Ready {
            return Ok(String::new());
        }
        match ctx.data_unchecked::<ApiState>().gateway.why(self.state.id().id).await {
            Ok(why) => Ok(why.sentence),
            // It went away since its state was read: the rest of the answer is still true of that moment, and must not
            // turn into an error.
            Err(GatewayError::NotFound(_)) => Ok("It is gone.".to_owned()),
            Err(error) => Err(error.into()),
        }
    }

    /// Its last events, newest last.
    #[graphql(complexity = "weight(first, 20, child_complexity)")]
    async fn events(
        &self,
        ctx: &Context<'_>,
        #[graphql(default_with = "Some(20)")] first: Option<i32>,
    ) -> Result<Vec<Event>, ApiError> {
        let limit = page_size(first, 20, RESOURCE_EVENTS_MAX)?;
        let identity = self.state.id();
        let key = RecentEventsKey { id: identity.id.into(), sequence: self.state.sequence, limit };
        let events = ctx.data_unchecked::<RecentEventsLoader>().load_one(key).await?.unwrap_or_default();
        let named = Arc::new(Named {
            kind: identity.kind.clone(),
            name: identity.name.clone(),
            ancestors: identity.ancestors.clone(),
        });
        Ok(events.into_iter().map(|event| Event::new(event, Some(Arc::clone(&named)))).collect())
    }
}
