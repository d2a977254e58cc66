//! A change below takes the readiness above away, first and in the same transaction.

use crate::support::{Builder, Projector, id, resource};
use crate::{log, memory};
use converge_domain::resource::{Identity, ResourceCommand, ResourceEvent, ResourceState, Shape, Standing};
use converge_domain::{
    Address, AggregateId, AggregateType, AnyCommand, AnyEvent, AnyState, Position, ResourceId, Timestamp,
};
use converge_event_store::{CommandGroup, InlineProjector, Metadata, Store};
use std::sync::Arc;

/// A settled, healthy resource under `ancestors`, nearest first, as a head.
async fn settle(store: &Arc<dyn Store>, id: AggregateId, ancestors: Vec<ResourceId>) {
    put(store, id, ancestors, ResourceState::default()).await;
}

/// A healthy resource of one event.
async fn put(store: &Arc<dyn Store>, id: AggregateId, ancestors: Vec<ResourceId>, state: ResourceState) {
    let identity = Identity { id: resource(id), kind: "vpc".to_owned(), name: id.to_string(), ancestors };
    let state = ResourceState { identity: Some(Arc::new(identity)), healthy: true, ..state };
    let state = AnyState::Resource(Arc::new(state));
    let address = Address { aggregate_type: AggregateType::Resource, id };
    let (row, _) = Projector.project(address, &AnyState::empty(AggregateType::Resource), &state);
    store.append(&Builder::default().write_with(0, id, 0, |head, _| *head = row).batch).await.unwrap();
}

fn request_deletion(ids: &[AggregateId]) -> CommandGroup {
    let command =
        || AnyCommand::Resource(ResourceCommand::RequestDeletion { by_name: true, at: Timestamp(1) });
    let address = |id| Address { aggregate_type: AggregateType::Resource, id };
    CommandGroup {
        command_id: None,
        metadata: Arc::new(Metadata::new()),
        steps: ids.iter().map(|id| (address(*id), command())).collect(),
        ..CommandGroup::default()
    }
}

fn subtree(event: &AnyEvent) -> Option<Standing> {
    match event {
        AnyEvent::Resource(ResourceEvent::SubtreeChanged(changed)) => Some(changed.subtree),
        _ => None,
    }
}

#[tokio::test]
async fn an_owner_that_one_cause_changes_twice_keeps_its_order() {
    let (_, store) = memory();
    let (root, owner, leaf) = (id(), id(), id());
    settle(&store, root, vec![]).await;
    let composed = ResourceState {
        shape: Arc::new(Shape { composes: true, ..Shape::default() }),
        composed: Some(Default::default()),
        ..ResourceState::default()
    };
    put(&store, owner, vec![resource(root)], composed).await;
    let set_aside = ResourceState {
        shape: Arc::new(Shape { works: true, ..Shape::default() }),
        quarantine: Some(Default::default()),
        ..ResourceState::default()
    };
    put(&store, leaf, vec![resource(owner), resource(root)], set_aside).await;
    let log = log(&store).await;
    let release = ResourceCommand::Release { reason: String::new(), at: Timestamp(1) };
    let mut group = request_deletion(&[leaf]);
    group.steps[0].1 = AnyCommand::Resource(release);
    log.execute(group).await.unwrap();
    let events = store.read(Position(3), 10).await.unwrap();
    let order: Vec<(AggregateId, u64, String)> =
        events.iter().map(|event| (event.aggregate_id, event.sequence.0, event.event.event_type())).collect();
    let fact = |id, sequence, name: &str| (id, sequence, name.to_owned());
    assert_eq!(
        order,
        [
            fact(root, 2, "SubtreeChanged"),
            fact(owner, 2, "RecomposeRequested"),
            fact(owner, 3, "SubtreeChanged"),
            fact(leaf, 2, "Released"),
        ]
    );
}

#[tokio::test]
async fn ancestors_are_demoted_top_down_before_the_cause() {
    let (_, store) = memory();
    let (root, middle, leaf) = (id(), id(), id());
    settle(&store, root, vec![]).await;
    settle(&store, middle, vec![resource(root)]).await;
    settle(&store, leaf, vec![resource(middle), resource(root)]).await;
    let log = log(&store).await;
    let committed = log.execute(request_deletion(&[leaf])).await.unwrap();
    let events = store.read(Position(3), 10).await.unwrap();
    let order: Vec<AggregateId> = events.iter().map(|event| event.aggregate_id).collect();
    assert_eq!(order, [root, middle, leaf]);
    assert_eq!(subtree(&events[0].event), Some(Standing::Open));
    assert_eq!(subtree(&events[1].event), Some(Standing::Open));
    // The caller sees his own event, and the position of the last.
    assert_eq!(committed.steps[0].events, events[2..]);
    assert_eq!(committed.position, Position(6));
}

#[tokio::test]
async fn an_owner_that_is_open_already_is_guarded_and_not_written() {
    let (_, store) = memory();
    let (root, a, b) = (id(), id(), id());
    settle(&store, root, vec![]).await;
    settle(&store, a, vec![resource(root)]).await;
    settle(&store, b, vec![resource(root)]).await;
    let log = log(&store).await;
    log.execute(request_deletion(&[a])).await.unwrap();
    let before = store.log_head().await.unwrap().position;
    let second = log.execute(request_deletion(&[b])).await.unwrap();
    assert_eq!(second.position, before.next());
    assert_eq!(store.heads(&[root]).await.unwrap()[0].sequence.0, 2);
}

#[tokio::test]
async fn children_that_change_in_one_batch_demote_their_owner_once() {
    let (_, store) = memory();
    let root = id();
    settle(&store, root, vec![]).await;
    let children: Vec<AggregateId> = (0..10).map(|_| id()).collect();
    for child in &children {
        settle(&store, *child, vec![resource(root)]).await;
    }
    let log = log(&store).await;
    let answers: Vec<_> =
        children.iter().map(|child| log.submit(request_deletion(&[*child])).unwrap()).collect();
    for answer in answers {
        answer.await.unwrap().unwrap();
    }
    let events = store.read(Position(11), 100).await.unwrap();
    assert_eq!(events.len(), 11);
    assert_eq!(events.iter().filter(|event| event.aggregate_id == root).count(), 1);
    assert_eq!(events[0].aggregate_id, root);
}

#[tokio::test]
async fn a_group_over_several_children_is_atomic_with_the_demotion() {
    let (_, store) = memory();
    let (root, a, missing) = (id(), id(), id());
    settle(&store, root, vec![]).await;
    settle(&store, a, vec![resource(root)]).await;
    let log = log(&store).await;
    assert!(log.execute(request_deletion(&[a, missing])).await.is_err());
    assert_eq!(store.log_head().await.unwrap().position, Position(2));
    log.execute(request_deletion(&[a])).await.unwrap();
    assert_eq!(store.log_head().await.unwrap().position, Position(4));
}
