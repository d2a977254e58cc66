//! Requesting deletions: all targets of a request or none.
//!
//! Two things refuse it before anything is stored. A live dependent in another root would lose its upstream: only top-level
//! resources can have one, so it is looked for there alone. And a protected resource among what the delete would take: each has an
//! edge to the protection of its root, so it is found without a walk over the tree.

use super::targets::TARGETS_MAX;
use super::{EngineGateway, metadata, refused, unavailable};
use crate::engine::resource_address;
use crate::gateway_api::{DeleteAnswer, DeleteRequest, GatewayError, Going, RequestContext};
use converge_domain::guard::Guard;
use converge_domain::resource::{ResourceCommand, ResourceState};
use converge_domain::{AnyCommand, DomainError, ResourceId};
use converge_event_store::{CommandGroup, ExecuteError, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Names that a refusal lists.
const LISTED_MAX: usize = 20;
/// Dependents and protected resources looked at per page.
const PAGE: u32 = 1000;
/// Nodes that are looked through for a way to a protected one that is not below a target.
const WALKED_MAX: usize = 100_000;

/// What a delete of these targets means.
struct Taken {
    targets: Vec<Arc<ResourceState>>,
    /// Top-level ones on which nobody depends: still so when the delete commits.
    guards: Vec<Guard>,
}

impl EngineGateway {
    pub(super) async fn delete_all(
        &self,
        request: DeleteRequest,
        context: &RequestContext,
    ) -> Result<DeleteAnswer, GatewayError> {
        let targets = self.targets(&request.targets).await?;
        let Taken { targets, guards } = self.with_dependents(targets, request.cascade).await?;
        self.refuse_protected(&targets).await?;
        let at = self.core.now();
        let mut steps: Vec<_> = Vec::with_capacity(targets.len());
        let mut subjects = Vec::with_capacity(targets.len());
        for state in &targets {
            let command = ResourceCommand::RequestDeletion { by_name: true, at };
            steps.push((resource_address(state.id().id), AnyCommand::Resource(command.clone())));
            if state.deletion.is_some() {
                // Its name may be promised already: a delete of the name is of both.
                let next = self.core.next_bearer(&state.id().reference()).await.map_err(unavailable)?;
                let next = next.map(|next| resource_address(next.id().id));
                steps.extend(next.map(|address| (address, AnyCommand::Resource(command))));
            }
            subjects.resize(steps.len(), state.id().reference());
        }
        let group = CommandGroup {
            command_id: context.command_id,
            metadata: metadata(context),
            steps,
            guards,
            ..CommandGroup::default()
        };
        match self.core.log.execute(group).await {
            Ok(committed) => {
                let mut going = Vec::with_capacity(targets.len());
                for state in &targets {
                    going.push(Going {
                        id: state.id().id,
                        reference: state.id().reference(),
                        already: state.deletion.is_some(),
                        notes: self.notes(state).await,
                    });
                }
                Ok(DeleteAnswer { position: committed.position, going })
            }
            Err(ExecuteError::Domain { step, error: DomainError::Resource(error) }) => {
                Err(super::targets::refusal(subjects.get(step), &error))
            }
            Err(error) => Err(refused(error)),
        }
    }

    /// The targets, and with `cascade` the live dependents in other roots, transitively; without it these refuse the delete.
    ///
    /// A dependent that is declared after this look is guarded against by the declaration, which holds its upstream as it read
    /// it; where there was none at all, also by the delete. In between a delete may find itself with a live dependent that was
    /// declared a moment before: its teardown waits for that one and names it, and nothing vanishes under anybody.
    async fn with_dependents(
        &self,
        targets: Vec<Arc<ResourceState>>,
        cascade: bool,
    ) -> Result<Taken, GatewayError> {
        let mut taken: HashMap<ResourceId, usize> =
            targets.iter().enumerate().map(|(at, state)| (state.id().id, at)).collect();
        let mut taken_all = targets;
        let (mut guards, mut foreign, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(state) = taken_all.get(at).cloned() {
            at += 1;
            if state.id().owner().is_some() || state.deletion.is_some() {
                continue;
            }
            let dependents = self.dependents(state.id().id).await.map_err(unavailable)?;
            if dependents.is_empty() {
                guards.push(Guard::NoDependents { id: state.id().id });
            }
            for dependent in dependents.into_iter().filter(|dependent| dependent.deletion.is_none()) {
                let id = dependent.id().id;
                if taken.contains_key(&id) || dependent.id().root() == state.id().id {
                    continue;
                }
                if !cascade {
                    foreign.push(format!("{} needs {}", dependent.id().reference(), state.id().reference()));
                    continue;
                }
                if taken_all.len() >= TARGETS_MAX {
                    return Err(GatewayError::Conflict(format!(
                        "more than {TARGETS_MAX} resources depend on these; delete some of the dependents first"
                    )));
                }
                taken.insert(id, taken_all.len());
                taken_all.push(dependent);
            }
        }
        if foreign.is_empty() {
            return Ok(Taken { targets: taken_all, guards });
        }
        Err(GatewayError::Conflict(format!(
            "resources in other roots depend on it: {}; delete these first, or cascade",
            listed(foreign)
        )))
    }

    async fn dependents(&self, upstream: ResourceId) -> Result<Vec<Arc<ResourceState>>, StoreError> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.core.store.dependents(upstream, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = Some(*last);
            let mut states: Vec<_> = self.core.resources_now(&page).await?.into_values().collect();
            states.sort_unstable_by_key(|state| state.id().id);
            found.extend(states);
        }
    }

    /// A protected resource among what would be taken refuses the delete.
    async fn refuse_protected(&self, targets: &[Arc<ResourceState>]) -> Result<(), GatewayError> {
        let mut protected = Vec::new();
        let mut roots = HashSet::new();
        for state in targets.iter().filter(|state| state.deletion.is_none()) {
            let root = state.id().root();
            if !roots.insert(root) {
                continue;
            }
            let under: Vec<&Arc<ResourceState>> =
                targets.iter().filter(|other| other.id().root() == root).collect();
            let marked = self.dependents(ResourceState::protection_id(root)).await.map_err(unavailable)?;
            for node in marked.iter().filter(|node| node.deletion.is_none()) {
                if self.is_taken(node, &under).await.map_err(unavailable)? {
                    protected.push(node.id().reference().to_string());
                }
            }
        }
        if protected.is_empty() {
            return Ok(());
        }
        Err(GatewayError::Conflict(format!(
            "it would take what is protected: {}; apply each with `deletion_protection: false` first",
            listed(protected)
        )))
    }

    /// Whether a delete of `targets`, which share a root with `node`, reaches it: it is one of them or below one, or it depends on
    /// something that is taken. The way is looked for upwards from the node, over its upstreams and owners.
    async fn is_taken(
        &self,
        node: &Arc<ResourceState>,
        targets: &[&Arc<ResourceState>],
    ) -> Result<bool, StoreError> {
        let targets: HashSet<ResourceId> = targets.iter().map(|target| target.id().id).collect();
        let mut seen = HashSet::from([node.id().id]);
        let mut frontier = vec![Arc::clone(node)];
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for state in &frontier {
                if targets.contains(&state.id().id) {
                    return Ok(true);
                }
                let above = state.edges.iter().map(|edge| edge.upstream);
                next.extend(above.chain(state.id().owner()).filter(|id| seen.insert(*id)));
            }
            // Too far to tell: what is protected is not put at risk.
            if seen.len() > WALKED_MAX {
                return Ok(true);
            }
            frontier = self.core.resources_now(&next).await?.into_values().collect();
        }
        Ok(false)
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

fn listed(mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(LISTED_MAX);
    names.truncate(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
