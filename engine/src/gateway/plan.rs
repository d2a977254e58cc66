//! From checked documents to one atomic group of commands.

use super::check::Kinds;
use crate::engine::Core;
use crate::gateway_api::{GatewayError, Violation};
use crate::names::{Walk, arrows};
use converge_domain::document::{Document, ResourceDocument};
use converge_domain::guard::Guard;
use converge_domain::kind::KindCommand;
use converge_domain::provider_config::ProviderConfigCommand;
use converge_domain::reactor_binding::ReactorBindingCommand;
use converge_domain::resource::{Declare, Edge, ResourceCommand, ResourceState};
use converge_domain::{
    Address, AggregateId, AggregateType, AnyCommand, KindRef, ResourceId, ResourceRef, Sequence, Timestamp,
    named,
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
    /// Upstreams of declared edges and what they lead to, as read: one that went away meanwhile would be waited for for ever,
    /// and would itself wait for its new dependent; one that got an upstream meanwhile could close a cycle.
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
    let subjects = subjects(core, documents).await?;
    let guards = check_upstreams(core, documents, &subjects).await?;
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
                    owner: None,
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
            Document::Resource(resource) => declare(kinds, &subjects, index, resource, at)?,
        });
    }
    planned.sort_by_key(|step| match step.command {
        AnyCommand::Kind(_) => 0,
        AnyCommand::ProviderConfig(_) => 1,
        AnyCommand::ReactorBinding(_) => 2,
        AnyCommand::Resource(_) => 3,
    });
    Ok(Plan { steps: planned, guards, new: subjects.new })
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

/// The resources that a request is about.
struct Subjects {
    /// By name: whose stream its declaration goes to.
    ids: HashMap<ResourceRef, ResourceId>,
    /// Those that nobody has made yet.
    new: HashSet<AggregateId>,
    /// New ones whose name somebody still bears who is going away.
    behind: HashMap<ResourceRef, ResourceId>,
    /// Bearers of names that the request declares nothing about.
    upstreams: HashMap<ResourceRef, Arc<ResourceState>>,
}

fn resources(documents: &[Document]) -> impl Iterator<Item = (usize, &ResourceDocument)> {
    documents.iter().enumerate().filter_map(|(index, document)| match document {
        Document::Resource(resource) => Some((index, resource)),
        _ => None,
    })
}

async fn subjects(core: &Core, documents: &[Document]) -> Result<Subjects, GatewayError> {
    let own: HashSet<ResourceRef> =
        resources(documents).map(|(_, resource)| ResourceRef::new(&resource.kind, &resource.name)).collect();
    let mut others: Vec<ResourceRef> = resources(documents)
        .flat_map(|(_, resource)| resource.depends_on.iter().map(|dependency| dependency.target.clone()))
        .filter(|target| !own.contains(target))
        .collect();
    others.sort_unstable();
    others.dedup();
    let names: Vec<ResourceRef> = own.iter().cloned().collect();
    let held = core.store.names(&names).await.map_err(super::unavailable)?;
    let held: HashMap<ResourceRef, ResourceId> =
        held.into_iter().map(|(name, id)| (name, ResourceId(id.0))).collect();
    // From memory: one that turns out to be going away refuses its command, and the request is planned again.
    let states = core.resources(&held.values().copied().collect::<Vec<_>>()).await;
    let states = states.map_err(super::unavailable)?;
    let mut subjects = Subjects {
        ids: HashMap::new(),
        new: HashSet::new(),
        behind: HashMap::new(),
        upstreams: core.bearers(&others).await.map_err(super::unavailable)?,
    };
    for name in own {
        let bearer = held.get(&name).copied();
        let going = bearer.filter(|id| states.get(id).is_some_and(|state| state.deletion.is_some()));
        let next = match going {
            Some(_) => core.next_bearer(&name).await.map_err(super::unavailable)?,
            None => None,
        };
        let known = match (going, &next) {
            (Some(_), Some(next)) => Some(next.id().id),
            (Some(_), None) => None,
            (None, _) => bearer,
        };
        let id = known.unwrap_or_else(|| {
            let id = ResourceId(Uuid::now_v7());
            subjects.new.insert(id.into());
            id
        });
        if let (Some(going), None) = (going, &next) {
            subjects.behind.insert(name.clone(), going);
        }
        subjects.ids.insert(name, id);
    }
    Ok(subjects)
}

/// Refuses edges that would close a cycle or lead to a composer's child, and guards what that was read from.
async fn check_upstreams(
    core: &Core,
    documents: &[Document],
    subjects: &Subjects,
) -> Result<Vec<Guard>, GatewayError> {
    let declared: HashMap<ResourceRef, Vec<ResourceRef>> = resources(documents)
        .map(|(_, resource)| {
            let upstreams = resource.depends_on.iter().map(|dependency| dependency.target.clone());
            (ResourceRef::new(&resource.kind, &resource.name), upstreams.collect())
        })
        .collect();
    let (mut violations, mut guards) = (Vec::new(), Vec::new());
    for (document, resource) in resources(documents) {
        let own = ResourceRef::new(&resource.kind, &resource.name);
        for (place, dependency) in resource.depends_on.iter().enumerate() {
            let target = &dependency.target;
            let mut refuse = |message: String| {
                violations.push(Violation {
                    document,
                    subject: own.to_string(),
                    pointer: format!("/depends_on/{place}"),
                    message,
                });
            };
            if let Some(upstream) = subjects.upstreams.get(target) {
                if !upstream.id().ancestors.is_empty() {
                    let root = core.resource_now(upstream.id().root()).await.map_err(super::unavailable)?;
                    let root = root.map_or_else(String::new, |root| root.id().reference().to_string());
                    refuse(format!(
                        "{target} is a part of {root}; only top-level resources may be depended on"
                    ));
                    continue;
                }
                guards.push(Guard::Unmoved {
                    id: upstream.id().id.into(),
                    sequence: Sequence(upstream.sequence),
                });
            }
            match core.walk_upstreams(target, &own, &declared).await.map_err(super::unavailable)? {
                Walk::Acyclic(read) => guards.extend(read),
                Walk::Cycle(path) => refuse(format!("it would close a cycle: {}", arrows(&path))),
                Walk::TooLarge => {
                    refuse(format!("{target} has too many upstreams to look through for a cycle"));
                }
            }
        }
    }
    if violations.is_empty() {
        guards.sort_unstable_by_key(|guard| format!("{guard:?}"));
        guards.dedup();
        Ok(guards)
    } else {
        Err(GatewayError::Validation(violations))
    }
}

fn declare(
    kinds: &Kinds<'_>,
    subjects: &Subjects,
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
    for dependency in &resource.depends_on {
        let target = &dependency.target;
        let declared = subjects.ids.get(target).filter(|_| !subjects.behind.contains_key(target)).copied();
        let borne = subjects.upstreams.get(target).filter(|upstream| upstream.deletion.is_none());
        let upstream = declared.or_else(|| borne.map(|upstream| upstream.id().id));
        edges.push(Edge {
            upstream: upstream.unwrap_or_else(|| target.name_id()),
            upstream_ref: target.clone(),
            values: dependency.values.clone(),
            conflicted: false,
            unbound: upstream.is_none(),
        });
    }
    let id = subjects.ids[&reference];
    let behind = subjects.behind.get(&reference).copied();
    let is_new = subjects.new.contains(&id.into());
    let command = if is_new { ResourceCommand::Declare } else { ResourceCommand::Redeclare };
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
            behind,
            composer: None,
            expected_revision: resource.expected_revision,
            at,
        }))),
    })
}
