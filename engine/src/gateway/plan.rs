//! From checked documents to one atomic group of commands.

use super::check::Kinds;
use crate::engine::Core;
use crate::gateway_api::{GatewayError, Violation};
use converge_domain::document::{Document, ResourceDocument};
use converge_domain::guard::Guard;
use converge_domain::kind::KindCommand;
use converge_domain::provider_config::ProviderConfigCommand;
use converge_domain::reactor_binding::ReactorBindingCommand;
use converge_domain::resource::{Declare, Edge, ResourceCommand};
use converge_domain::{
    Address, AggregateId, AggregateType, AnyCommand, KindRef, ResourceId, ResourceRef, Timestamp, named,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

/// One document's command, and where it goes.
pub(super) struct Planned {
    /// Index of the document in the request.
    pub document: usize,
    pub document_type: &'static str,
    pub kind: String,
    pub name: String,
    pub address: Address,
    pub command: AnyCommand,
}

/// The commands of a request and what they rest on.
pub(super) struct Plan {
    pub steps: Vec<Planned>,
    /// Upstreams of declared edges, as read: one that went away meanwhile would be waited for for ever, and would
    /// itself wait for its new dependent.
    pub guards: Vec<Guard>,
    /// Resources that nobody has made yet.
    pub new: HashSet<AggregateId>,
}

/// Plans every document, in the order kinds, configs, bindings, resources.
pub(super) async fn plan(
    core: &Core,
    kinds: &Kinds<'_>,
    documents: &[Document],
    at: Timestamp,
) -> Result<Plan, GatewayError> {
    let (ids, new) = resource_ids(core, documents).await?;
    let guards = live_upstreams(core, documents, &ids).await?;
    let mut planned: Vec<Planned> = Vec::with_capacity(documents.len());
    for (index, document) in documents.iter().enumerate() {
        planned.push(match document {
            Document::Kind(manifest) => named_command(
                index,
                "kind",
                AggregateType::Kind,
                manifest.kind_ref().to_string(),
                AnyCommand::Kind(KindCommand::Publish { manifest: manifest.clone(), at }),
            ),
            Document::ProviderConfig(config) => named_command(
                index,
                "providerconfig",
                AggregateType::ProviderConfig,
                config.name.clone(),
                AnyCommand::ProviderConfig(ProviderConfigCommand::Declare {
                    document: Box::new(config.clone()),
                    at,
                }),
            ),
            Document::ReactorBinding(binding) => named_command(
                index,
                "reactorbinding",
                AggregateType::ReactorBinding,
                binding.name.clone(),
                AnyCommand::ReactorBinding(ReactorBindingCommand::Declare {
                    document: Box::new(binding.clone()),
                    at,
                }),
            ),
            Document::Resource(resource) => declare(kinds, &ids, &new, index, resource, at)?,
        });
    }
    planned.sort_by_key(|step| match step.command {
        AnyCommand::Kind(_) => 0,
        AnyCommand::ProviderConfig(_) => 1,
        AnyCommand::ReactorBinding(_) => 2,
        AnyCommand::Resource(_) => 3,
    });
    Ok(Plan { steps: planned, guards, new })
}

fn named_command(
    document: usize,
    document_type: &'static str,
    aggregate_type: AggregateType,
    name: String,
    command: AnyCommand,
) -> Planned {
    let address = Address { aggregate_type, id: AggregateId(named(aggregate_type.as_str(), &name)) };
    Planned { document, document_type, kind: String::new(), name, address, command }
}

/// The holder of every name in the request, a new id for names that nobody holds; and which ids are new.
async fn resource_ids(
    core: &Core,
    documents: &[Document],
) -> Result<(HashMap<ResourceRef, ResourceId>, HashSet<AggregateId>), GatewayError> {
    let resources = || {
        documents.iter().filter_map(|document| match document {
            Document::Resource(resource) => Some(resource),
            _ => None,
        })
    };
    let mut names: Vec<ResourceRef> = Vec::new();
    for resource in resources() {
        names.push(ResourceRef::new(&resource.kind, &resource.name));
        names.extend(resource.depends_on.iter().map(|dependency| dependency.target.clone()));
    }
    let mut ids: HashMap<_, _> = core
        .store
        .names(&names)
        .await
        .map_err(super::unavailable)?
        .into_iter()
        .map(|(name, id)| (name, ResourceId(id.0)))
        .collect();
    let mut new = HashSet::new();
    for resource in resources() {
        ids.entry(ResourceRef::new(&resource.kind, &resource.name)).or_insert_with(|| {
            let id = ResourceId(Uuid::now_v7());
            new.insert(id.into());
            id
        });
    }
    Ok((ids, new))
}

/// Refuses edges to resources that are going away, and guards the others.
async fn live_upstreams(
    core: &Core,
    documents: &[Document],
    ids: &HashMap<ResourceRef, ResourceId>,
) -> Result<Vec<Guard>, GatewayError> {
    let mut wanted: HashMap<AggregateId, (usize, String, String)> = HashMap::new();
    for (index, document) in documents.iter().enumerate() {
        let Document::Resource(resource) = document else { continue };
        for (place, dependency) in resource.depends_on.iter().enumerate() {
            if let Some(id) = ids.get(&dependency.target) {
                let subject = format!("{}/{}", resource.kind, resource.name);
                wanted.insert((*id).into(), (index, subject, format!("/depends_on/{place}")));
            }
        }
    }
    if wanted.is_empty() {
        return Ok(vec![]);
    }
    let heads =
        core.store.heads(&wanted.keys().copied().collect::<Vec<_>>()).await.map_err(super::unavailable)?;
    let mut guards = Vec::with_capacity(heads.len());
    for head in heads {
        let going = head.state.as_resource().filter(|state| state.deletion.is_some());
        if let (Some(state), Some((document, subject, pointer))) = (going, wanted.remove(&head.id)) {
            let message = format!("{} is being deleted", state.id().reference());
            return Err(GatewayError::Validation(vec![Violation { document, subject, pointer, message }]));
        }
        guards.push(Guard::Unmoved { id: head.id, sequence: head.sequence });
    }
    Ok(guards)
}

fn declare(
    kinds: &Kinds<'_>,
    ids: &HashMap<ResourceRef, ResourceId>,
    new: &HashSet<AggregateId>,
    index: usize,
    resource: &ResourceDocument,
    at: Timestamp,
) -> Result<Planned, GatewayError> {
    let reference = ResourceRef::new(&resource.kind, &resource.name);
    let violation = |pointer: String, message: String| {
        GatewayError::Validation(vec![Violation {
            document: index,
            subject: reference.to_string(),
            pointer,
            message,
        }])
    };
    let kind = KindRef::new(&resource.kind, resource.kind_version);
    let entry =
        kinds.get(&kind).ok_or_else(|| violation("/kind".to_owned(), format!("kind {kind} is not known")))?;
    let mut edges = Vec::with_capacity(resource.depends_on.len());
    for (place, dependency) in resource.depends_on.iter().enumerate() {
        let upstream = ids.get(&dependency.target).ok_or_else(|| {
            let message =
                format!("{} does not exist; apply it first or in the same request", dependency.target);
            violation(format!("/depends_on/{place}"), message)
        })?;
        edges.push(Edge {
            upstream: *upstream,
            upstream_ref: dependency.target.clone(),
            values: dependency.values.clone(),
        });
    }
    let id = ids[&reference];
    let command =
        if new.contains(&id.into()) { ResourceCommand::Declare } else { ResourceCommand::Redeclare };
    Ok(Planned {
        document: index,
        document_type: "resource",
        kind: resource.kind.clone(),
        name: resource.name.clone(),
        address: Address { aggregate_type: AggregateType::Resource, id: id.into() },
        command: AnyCommand::Resource(command(Box::new(Declare {
            id,
            reference,
            kind_version: resource.kind_version,
            spec: Arc::new(resource.spec.clone()),
            labels: resource.labels.clone(),
            provider_config_ref: resource.provider_config_ref.clone(),
            deletion_protection: resource.deletion_protection,
            edges,
            shape: entry.shape,
            composer: None,
            expected_revision: resource.expected_revision,
            at,
        }))),
    })
}
