//! Writing the children of a pass.

use super::layers::layers;
use super::outline::Outline;
use super::pass::{CHUNK, CHUNKS_IN_FLIGHT, End, Ids, Stop, ended};
use crate::engine::Core;
use converge_domain::composition::ChildItem;
use converge_domain::resource::{ComposerRef, Conflict, Declare, Edge, ResourceCommand, ResourceError};
use converge_domain::{AnyEvent, DomainError, ResourceId, ResourceRef};
use converge_event_store::{ExecuteError, StoreError};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// Declares the children of one output.
pub(super) struct Writer<'a> {
    pub core: &'a Core,
    /// A process that stops leaves the rest of a pass to the next one.
    pub stop: &'a CancellationToken,
    pub composer: ComposerRef,
    pub outline: &'a Outline,
    pub ids: &'a Ids,
    /// Places of children that this pass does not touch.
    pub left_alone: &'a HashSet<u32>,
    /// Places of children whose names others hold.
    pub conflicts: &'a BTreeMap<u32, Conflict>,
    /// One child that was made or changed.
    pub sample: OnceLock<ResourceRef>,
}

impl Writer<'_> {
    /// Declares every child; how many were created and how many changed.
    pub async fn write_all(&self) -> Result<(u64, u64), Stop> {
        let (mut created, mut changed) = (0, 0);
        for layer in layers(&self.outline.graph) {
            // A layer is begun when all before it are done; inside one the order means nothing.
            let chunks: Vec<_> = layer.chunks(CHUNK).map(|places| self.write(places).boxed()).collect();
            let mut chunks = stream::iter(chunks).buffer_unordered(CHUNKS_IN_FLIGHT);
            while let Some((new, updated)) = chunks.try_next().await? {
                created += new;
                changed += updated;
            }
        }
        Ok((created, changed))
    }

    async fn write(&self, places: &[u32]) -> Result<(u64, u64), Stop> {
        if self.stop.is_cancelled() {
            return Err(Stop::End(End::Over));
        }
        let is_written =
            |place: &&u32| !self.left_alone.contains(place) && !self.conflicts.contains_key(place);
        let places: Vec<u32> = places.iter().filter(is_written).copied().collect();
        let Some(children) = self.outline.children(self.core, &places).await? else {
            return Err(Stop::output_gone());
        };
        let declares = places.into_iter().zip(children).map(|(place, child)| self.declare(place, child));
        let (mut created, mut changed) = (0, 0);
        for result in futures::future::join_all(declares).await {
            match result? {
                Some(true) => created += 1,
                Some(false) => changed += 1,
                None => {}
            }
        }
        Ok((created, changed))
    }

    /// The order in which a composer lists edges means nothing: sorted, so that it makes no difference.
    fn edges(&self, place: u32) -> Vec<Edge> {
        let graph = &self.outline.graph;
        let mut edges: Vec<Edge> = graph
            .edges(place)
            .map(|(upstream, values)| Edge {
                upstream: self.ids.of[upstream as usize],
                upstream_ref: graph.child(upstream),
                values: values.to_vec(),
                conflicted: self.conflicts.contains_key(&upstream),
                unbound: false,
            })
            .collect();
        edges.sort_by(|a, b| a.upstream_ref.cmp(&b.upstream_ref));
        edges
    }

    /// Some(true) when created, Some(false) when changed, None when it was as wanted.
    async fn declare(&self, place: u32, child: ChildItem) -> Result<Option<bool>, Stop> {
        let core = self.core;
        let id = self.ids.of[place as usize];
        let kind = child.kind_ref();
        let reference = child.reference();
        let Some(entry) = core.registry.kind(&kind) else {
            return Err(Stop::End(End::Abandoned(format!("kind {kind} is gone"))));
        };
        let declare = Declare {
            id,
            reference: reference.clone(),
            kind_version: child.kind_version,
            spec: Arc::new(child.spec),
            labels: child.labels,
            provider_config_ref: child.provider_config_ref,
            deletion_protection: child.deletion_protection,
            edges: self.edges(place),
            shape: entry.shape,
            behind: None,
            composer: Some(self.composer.clone()),
            expected_revision: None,
            at: core.now(),
        };
        let held = self.ids.held[place as usize];
        let command = if held { ResourceCommand::Redeclare } else { ResourceCommand::Declare };
        let mut group = core.group(id, command(Box::new(declare)));
        if !held {
            group.new.insert(id.into());
        }
        match core.log.execute(group).await {
            Ok(committed) => {
                let events = committed.steps.iter().flat_map(|step| &step.events);
                let mut verdict = None;
                for stored in events {
                    if let AnyEvent::Resource(event) = &stored.event {
                        verdict = Some(event.name() == "Created");
                        self.sample.get_or_init(|| reference.clone());
                    }
                }
                Ok(verdict)
            }
            Err(ExecuteError::Domain { error: DomainError::Resource(error), .. }) => {
                self.refused(id, &reference, error).await
            }
            // The name was taken between the look-up and the write: the next run finds its holder.
            Err(ExecuteError::NameTaken) => {
                Err(Stop::Store(StoreError::Retry("a child's name was taken".to_owned())))
            }
            Err(error) => Err(ended(error)),
        }
    }

    async fn refused(
        &self,
        id: ResourceId,
        child: &ResourceRef,
        error: ResourceError,
    ) -> Result<Option<bool>, Stop> {
        let core = self.core;
        match error {
            ResourceError::Deleting => {
                let dropped = core.resource_now(id).await?.is_some_and(|state| state.dropped.is_some());
                // One that a user deleted is left alone: its end makes the composer run again. One that an
                // earlier pass dropped must be gone before its successor can be made.
                if dropped { Err(Stop::End(End::Waiting)) } else { Ok(None) }
            }
            // Somebody else took the name since it was looked up: the next run finds the conflict.
            ResourceError::Owned { .. } | ResourceError::UserDeclared => {
                Err(Stop::Store(StoreError::Retry(format!("{child}: {error}"))))
            }
            // It ended between the look-up and the write: the next run makes its successor.
            ResourceError::NotFound => Err(Stop::Store(StoreError::Retry("a child has ended".to_owned()))),
            error => Err(Stop::End(End::Abandoned(format!("{child}: {error}")))),
        }
    }
}
