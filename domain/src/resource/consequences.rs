//! What a change of one resource means for others in the same transaction.

use super::{Gate, Reaction, ResourceEvent, ResourceState, Standing};
use crate::guard::Guard;
use crate::ids::{ResourceId, Sequence};

/// Guards that the decision rests on, and the demotion it forces on the owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consequences {
    pub guards: Vec<Guard>,
    /// The owner's subtree must be at least this unsettled, from before this change on. The executor
    /// appends `RaiseSubtree` to the owner (events *before* the cause) when its subtree is better than that,
    /// and the guard `SubtreeAtLeast` otherwise; then goes on upward with the owner's own consequences.
    pub raise_owner: Option<(ResourceId, Standing)>,
    /// A child that its composer still wants is gone: the composer must compose again. Decided in the same
    /// transaction, so that no crash can lose it and no evaluation in between finds the subtree complete.
    pub recompose_owner: Option<ResourceId>,
}

/// Derives them from the states around `events`.
///
/// Why a Ready composite never stands over an unready child: whenever a node's standing gets worse, its owner
/// is demoted in the same transaction and at a lower position, or guarded to be demoted already. The owner's
/// promotion in turn carries `NoUnreadyChild`, checked after its head is locked. Both write or lock the owner's
/// head, so they are serial; whichever comes second sees the first.
pub fn consequences(before: &ResourceState, after: &ResourceState, events: &[ResourceEvent]) -> Consequences {
    let mut guards = Vec::new();
    for event in events {
        guards_of(after, event, &mut guards);
    }
    let raise_owner = match after.identity.as_ref().and_then(|identity| identity.owner()) {
        Some(owner) if after.standing() > before.standing() && after.standing() > Standing::AllReady => {
            Some((owner, after.standing()))
        }
        _ => None,
    };
    let recompose_owner = events.iter().find_map(|event| match event {
        ResourceEvent::Deleted(deleted) if deleted.wanted => deleted.owner,
        _ => None,
    });
    Consequences { guards, raise_owner, recompose_owner }
}

fn guards_of(after: &ResourceState, event: &ResourceEvent, guards: &mut Vec<Guard>) {
    let identity = after.id();
    let id = identity.id;
    let in_pass = |pass_id| identity.owner().map(|owner| Guard::InPass { id: owner, pass_id });
    match event {
        ResourceEvent::Created(created) => guards.extend(created.pass_id.and_then(in_pass)),
        ResourceEvent::Configured(configured) => guards.extend(configured.pass_id.and_then(in_pass)),
        ResourceEvent::Dropped { pass_id, .. } | ResourceEvent::Readopted { pass_id, .. } => {
            guards.extend(in_pass(*pass_id));
        }
        ResourceEvent::UpstreamsEvaluated(evaluated) => {
            let read = evaluated.inputs.iter().map(|input| (input.source, input.source_sequence));
            let held = evaluated.held_by.iter().copied().filter(|_| evaluated.gate != Gate::Open);
            for (upstream, sequence) in read.chain(held) {
                let guard = Guard::Unmoved { id: upstream.into(), sequence: Sequence(sequence) };
                if !guards.contains(&guard) {
                    guards.push(guard);
                }
            }
        }
        ResourceEvent::Claimed(claim) => match claim.reaction {
            Reaction::Work | Reaction::Compose => {
                guards.extend(after.edges.iter().map(|edge| Guard::UpstreamReady { id: edge.upstream }));
                guards
                    .extend(identity.ancestors.iter().map(|ancestor| Guard::AncestorQuiet { id: *ancestor }));
            }
            Reaction::Rollup => {
                guards.push(Guard::NoOpenChild { id });
                guards
                    .extend(identity.ancestors.iter().map(|ancestor| Guard::AncestorQuiet { id: *ancestor }));
            }
            Reaction::Teardown => guards.extend([Guard::NoDependents { id }, Guard::NoChildren { id }]),
        },
        ResourceEvent::SubtreeChanged(changed) => match changed.subtree {
            Standing::AllReady => guards.push(Guard::NoUnreadyChild { id }),
            Standing::Impaired if changed.digest.is_some() => guards.push(Guard::NoOpenChild { id }),
            _ => {}
        },
        ResourceEvent::TeardownOpened {} | ResourceEvent::Deleted(_) => {
            guards.extend([Guard::NoDependents { id }, Guard::NoChildren { id }]);
        }
        _ => {}
    }
}
