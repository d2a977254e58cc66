//! Between the wire's words and the engine's. Whatever a worker sends is checked here, once.

use crate::state::{Offer, OfferTarget};
use bytes::Bytes;
use converge_domain::resource::{Condition, Reaction};
use converge_domain::{ClaimId, Epoch, KindRef, ResourceId};
use converge_engine::dispatch::{Fence, ProviderConfigSnapshot, Task, TaskResult};
use converge_protocol::v1;
use std::str::FromStr;
use uuid::Uuid;

/// Why a frame makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Malformed {
    #[error("the frame names no fence")]
    NoFence,
    #[error("`{0}` is not a uuid")]
    Uuid(String),
    #[error("`{0}` is not a kind version; they go from 1 to 32767")]
    Version(u32),
    #[error("an offer must name a kind or a provider")]
    EmptyOffer,
    #[error("the outcome has no result")]
    NoResult,
}

pub(crate) fn fence(wire: Option<&v1::Fence>) -> Result<Fence, Malformed> {
    let wire = wire.ok_or(Malformed::NoFence)?;
    let uuid =
        |text: &str| Uuid::from_str(text).map_err(|_| Malformed::Uuid(text.chars().take(64).collect()));
    Ok(Fence {
        id: ResourceId(uuid(&wire.resource_id)?),
        epoch: Epoch(wire.epoch),
        claim_id: ClaimId(uuid(&wire.claim_id)?),
    })
}

pub(crate) fn wire_fence(fence: &Fence) -> v1::Fence {
    v1::Fence {
        resource_id: fence.id.to_string(),
        epoch: fence.epoch.0,
        claim_id: fence.claim_id.to_string(),
    }
}

fn version(wire: u32) -> Result<u16, Malformed> {
    match u16::try_from(wire) {
        Ok(version @ 1..=32767) => Ok(version),
        _ => Err(Malformed::Version(wire)),
    }
}

pub(crate) fn kind(name: &str, kind_version: u32) -> Result<KindRef, Malformed> {
    Ok(KindRef::new(name, version(kind_version)?))
}

pub(crate) fn offers(wire: &[v1::Served]) -> Result<Vec<Offer>, Malformed> {
    let offer = |served: &v1::Served| {
        let target = match (served.provider.as_str(), served.kind.as_str()) {
            ("", "") => return Err(Malformed::EmptyOffer),
            ("", kind) => OfferTarget::Kind {
                kind: kind.to_owned(),
                versions: served.versions.iter().map(|v| version(*v)).collect::<Result<_, _>>()?,
            },
            (provider, _) => OfferTarget::Provider(provider.to_owned()),
        };
        Ok(Offer { target, ready: served.ready })
    };
    wire.iter().map(offer).collect()
}

/// The word a reaction has on the wire.
const fn word(reaction: Reaction, observes: bool) -> &'static str {
    match reaction {
        Reaction::Work => "work",
        Reaction::Compose => "compose",
        Reaction::Rollup => "rollup",
        Reaction::Teardown => "teardown",
        // A kind without a resync reaction is asked by the one that works, which a resync triggers then.
        Reaction::Observe if observes => "observe",
        Reaction::Observe => "work",
    }
}

/// The task's frame; `deadline_ms` is what is left of its deadline at this moment.
pub(crate) fn task(task: Task, deadline_ms: u64) -> v1::Task {
    v1::Task {
        fence: Some(wire_fence(&task.fence)),
        kind: task.kind.kind,
        kind_version: u32::from(task.kind.kind_version),
        name: task.name,
        reaction: word(task.reaction, task.observes).to_owned(),
        trigger: task.reaction.trigger().to_owned(),
        reaction_name: task.reaction_name,
        finalizer: task.finalizer.unwrap_or_default(),
        generation: task.generation.0,
        attempt: task.attempt,
        idempotency_key: task.idempotency_key,
        deadline_ms,
        labels: task.labels.into_iter().collect(),
        spec: task.spec,
        status: task.status.unwrap_or_default(),
        config_override: task.config_override.map(provider_config),
        paged_input: task.paged_input.is_some(),
        summary: task.summary.unwrap_or_default(),
        emits: task.emits,
        provider: task.provider,
        dry_run: false,
    }
}

pub(crate) fn provider_config(config: ProviderConfigSnapshot) -> v1::ProviderConfig {
    v1::ProviderConfig { name: config.name, spec: config.spec, data: config.data, version: config.version }
}

/// What a worker says it sent of a composition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) frames: u64,
    pub(crate) children: u64,
    pub(crate) edges: u64,
    pub(crate) configs: u64,
}

/// The result inside an outcome. A part that is not the JSON it should be makes the whole a transient failure:
/// nothing of a garbled answer may be half applied.
pub(crate) fn result(wire: Option<v1::outcome::Result>) -> Result<(TaskResult, Counts), Malformed> {
    match wire.ok_or(Malformed::NoResult)? {
        v1::outcome::Result::Failure(failure) => {
            let status = failure.status.filter(is_object);
            let result = TaskResult::Failure { message: failure.message, terminal: failure.terminal, status };
            Ok((result, Counts::default()))
        }
        v1::outcome::Result::Success(success) => {
            let counts = Counts {
                frames: u64::from(success.chunks),
                children: success.children,
                edges: success.edges,
                configs: success.configs,
            };
            Ok((self::success(success).unwrap_or_else(transient), counts))
        }
    }
}

fn success(success: v1::Success) -> Result<TaskResult, String> {
    if success.status.as_ref().is_some_and(|status| !is_object(status)) {
        return Err("the outcome's status is not a JSON object".to_owned());
    }
    let conditions = success
        .conditions
        .map(|json| serde_json::from_slice::<Vec<Condition>>(&json))
        .transpose()
        .map_err(|error| format!("the outcome's conditions are not valid: {error}"))?;
    Ok(TaskResult::Success {
        status: success.status,
        conditions,
        healthy: success.healthy,
        changed: success.changed,
        differs: success.differs,
        in_progress: success.in_progress,
        requeue_after_secs: success.requeue_after_secs,
        children: success.children,
        edges: success.edges,
        configs: success.configs,
    })
}

/// A failure that another try may cure.
pub(crate) fn transient(message: String) -> TaskResult {
    TaskResult::Failure { message, terminal: false, status: None }
}

fn is_object(json: &Bytes) -> bool {
    serde_json::from_slice::<&serde_json::value::RawValue>(json)
        .is_ok_and(|value| value.get().trim_start().starts_with('{'))
}
