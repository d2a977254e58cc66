//! The cases. Each gets an empty store.

use crate::support::{Builder, head, id, resource};
use converge_domain::guard::Guard;
use converge_domain::resource::{Phase, Standing};
use converge_domain::{
    AggregateId, BatchId, ClaimId, CommandId, KindRef, PassId, Position, ResourceId, ResourceRef, Sequence,
    SessionId, Timestamp,
};
use converge_event_store::{
    Batch, ChildMark, ChildRow, ClaimRow, ConflictKind, Member, PolicyRow, QueueRow, StagedItem, StagedPart,
    Store, StoreError, TimerRow, UnitConflict,
};
use std::sync::Arc;
use uuid::Uuid;

type Any = Arc<dyn Store>;

fn conflict(unit: u32, kind: ConflictKind) -> UnitConflict {
    UnitConflict { unit, kind }
}

async fn conflicts(store: &Any, batch: &Batch) -> Vec<UnitConflict> {
    store.append(batch).await.unwrap().conflicts
}

/// Appends a batch that must survive whole.
async fn put(store: &Any, builder: Builder) {
    assert_eq!(conflicts(store, &builder.batch).await, []);
}

/// Whether a unit with only this guard (and a write of its own) survives.
async fn passes(store: &Any, guard: Guard) -> bool {
    let batch = Builder::default().write(0, id(), 0).guard(0, guard).batch;
    let conflicts = conflicts(store, &batch).await;
    assert!(conflicts.iter().all(|lost| *lost == conflict(0, ConflictKind::Guard)));
    conflicts.is_empty()
}

pub async fn positions_are_dense_over_batches_and_lost_units(store: Any) {
    let (a, b) = (id(), id());
    let first = store.append(&Builder::default().write(0, a, 0).write(1, b, 0).batch).await.unwrap();
    assert_eq!((first.first, first.count), (Position(1), 2));
    // The middle unit loses; its neighbours close ranks.
    let batch = Builder::default().write(0, a, 1).write(1, b, 7).write(2, id(), 0).batch;
    let second = store.append(&batch).await.unwrap();
    assert_eq!((second.first, second.count), (Position(3), 2));
    assert_eq!(second.conflicts, [conflict(1, ConflictKind::Head)]);
    let events = store.read(Position(0), 100).await.unwrap();
    assert_eq!(events.iter().map(|event| event.position.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(store.log_head().await.unwrap().position, Position(4));
}

pub async fn a_moved_head_fails_its_unit_alone(store: Any) {
    let (a, b) = (id(), id());
    put(&store, Builder::default().write(0, a, 0)).await;
    // An insert over an existing head, an update of a missing one.
    let batch = Builder::default().write(0, a, 0).write(1, b, 3).write(2, id(), 0).batch;
    assert_eq!(
        conflicts(&store, &batch).await,
        [conflict(0, ConflictKind::Head), conflict(1, ConflictKind::Head)]
    );
    let heads = store.heads(&[a, b]).await.unwrap();
    assert_eq!(heads.iter().map(|head| (head.id, head.sequence)).collect::<Vec<_>>(), [(a, Sequence(1))]);
}

pub async fn a_unit_stands_or_falls_as_a_whole(store: Any) {
    let (a, b) = (id(), id());
    put(&store, Builder::default().write(0, a, 0)).await;
    let batch = Builder::default().write(0, a, 5).write(0, b, 0).batch;
    assert_eq!(conflicts(&store, &batch).await, [conflict(0, ConflictKind::Head)]);
    assert_eq!(store.heads(&[b]).await.unwrap(), []);
    assert_eq!(store.log_head().await.unwrap().position, Position(1));
}

pub async fn an_unmoved_guard_holds_until_the_head_moves(store: Any) {
    let a = id();
    assert!(passes(&store, Guard::Unmoved { id: a, sequence: Sequence(0) }).await);
    put(&store, Builder::default().write(0, a, 0)).await;
    assert!(!passes(&store, Guard::Unmoved { id: a, sequence: Sequence(0) }).await);
    assert!(passes(&store, Guard::Unmoved { id: a, sequence: Sequence(1) }).await);
    put(&store, Builder::default().write(0, a, 1)).await;
    assert!(!passes(&store, Guard::Unmoved { id: a, sequence: Sequence(1) }).await);
}

pub async fn phase_guards_look_at_the_stored_phase_and_pass(store: Any) {
    let (a, pass) = (id(), PassId(Uuid::new_v4()));
    let it = resource(a);
    assert!(!passes(&store, Guard::UpstreamReady { id: it }).await);
    assert!(!passes(&store, Guard::AncestorQuiet { id: it }).await);
    let mut sequence = 0;
    let mut set = async |phase: Phase, pass: Option<PassId>| {
        let builder = Builder::default().write_with(0, a, sequence, |head, _| {
            head.phase = Some(phase);
            head.pass_id = pass;
        });
        sequence += 1;
        put(&store, builder).await;
    };
    set(Phase::Ready, None).await;
    assert!(passes(&store, Guard::UpstreamReady { id: it }).await);
    assert!(passes(&store, Guard::AncestorQuiet { id: it }).await);
    assert!(!passes(&store, Guard::InPass { id: it, pass_id: pass }).await);
    set(Phase::Reconciling, Some(pass)).await;
    assert!(!passes(&store, Guard::UpstreamReady { id: it }).await);
    assert!(!passes(&store, Guard::AncestorQuiet { id: it }).await);
    assert!(passes(&store, Guard::InPass { id: it, pass_id: pass }).await);
    assert!(!passes(&store, Guard::InPass { id: it, pass_id: PassId(Uuid::new_v4()) }).await);
    set(Phase::Deleting, Some(pass)).await;
    assert!(!passes(&store, Guard::InPass { id: it, pass_id: pass }).await);
    set(Phase::Deleting, None).await;
    assert!(!passes(&store, Guard::AncestorQuiet { id: it }).await);
}

pub async fn a_subtree_guard_wants_at_least_that_unsettled(store: Any) {
    let a = id();
    put(&store, Builder::default().write_with(0, a, 0, |head, _| head.subtree = Some(Standing::Impaired)))
        .await;
    let at_least = |standing| Guard::SubtreeAtLeast { id: resource(a), standing };
    assert!(passes(&store, at_least(Standing::AllReady)).await);
    assert!(passes(&store, at_least(Standing::Impaired)).await);
    assert!(!passes(&store, at_least(Standing::Open)).await);
    assert!(!passes(&store, Guard::SubtreeAtLeast { id: resource(id()), standing: Standing::LeftOut }).await);
}

fn child_row(parent: AggregateId, mark: ChildMark) -> Option<Option<ChildRow>> {
    Some(Some(ChildRow { parent: resource(parent), mark }))
}

pub async fn child_guards_look_at_the_rows_under_the_parent(store: Any) {
    let (parent, child) = (id(), id());
    let no_open = Guard::NoOpenChild { id: resource(parent) };
    let no_unready = Guard::NoUnreadyChild { id: resource(parent) };
    assert!(passes(&store, no_open.clone()).await && passes(&store, no_unready.clone()).await);
    let mut sequence = 0;
    let mut mark = async |row: Option<Option<ChildRow>>| {
        put(&store, Builder::default().write_with(0, child, sequence, |_, rows| rows.child = row)).await;
        sequence += 1;
        store.children_summary(resource(parent)).await.unwrap()
    };
    let summary = mark(child_row(parent, ChildMark::Open)).await;
    assert_eq!((summary.open, summary.impaired), (Some(resource(child)), None));
    assert!(!passes(&store, no_open.clone()).await && !passes(&store, no_unready.clone()).await);
    let summary = mark(child_row(parent, ChildMark::Impaired)).await;
    assert_eq!((summary.open, summary.impaired), (None, Some(resource(child))));
    assert!(passes(&store, no_open.clone()).await && !passes(&store, no_unready.clone()).await);
    let summary = mark(child_row(parent, ChildMark::Dropped)).await;
    assert_eq!(summary.dropped, [resource(child)]);
    assert!(passes(&store, no_open.clone()).await && passes(&store, no_unready.clone()).await);
    assert_eq!(store.unsettled(None, 10).await.unwrap(), [(resource(parent), resource(child))]);
    mark(None).await;
    assert_eq!(store.unsettled(None, 10).await.unwrap().len(), 1);
    mark(Some(None)).await;
    assert_eq!(store.unsettled(None, 10).await.unwrap(), []);
}

pub async fn dependent_and_children_guards_look_at_edges_and_heads(store: Any) {
    let (upstream, dependent, child) = (id(), id(), id());
    let no_dependents = Guard::NoDependents { id: resource(upstream) };
    let no_children = Guard::NoChildren { id: resource(upstream) };
    assert!(passes(&store, no_dependents.clone()).await && passes(&store, no_children.clone()).await);
    let linked = Builder::default()
        .write_with(0, dependent, 0, |_, rows| rows.edges_added = vec![resource(upstream)])
        .write_with(1, child, 0, |head, _| head.parent = Some(resource(upstream)));
    put(&store, linked).await;
    assert!(!passes(&store, no_dependents.clone()).await && !passes(&store, no_children.clone()).await);
    assert_eq!(store.dependents(resource(upstream), None, 10).await.unwrap(), [resource(dependent)]);
    assert_eq!(store.children(resource(upstream), None, 10).await.unwrap(), [resource(child)]);
    let after = Some(resource(dependent));
    assert_eq!(store.dependents(resource(upstream), after, 10).await.unwrap(), []);
    let cut = Builder::default()
        .write_with(0, dependent, 1, |_, rows| rows.edges_removed = vec![resource(upstream)])
        .write_with(1, child, 1, |head, rows| {
            head.parent = Some(resource(upstream));
            rows.head_removed = true;
        });
    put(&store, cut).await;
    assert!(passes(&store, no_dependents).await && passes(&store, no_children).await);
}

pub async fn a_taken_name_is_a_name_conflict_until_it_is_freed(store: Any) {
    let (a, b, name) = (id(), id(), ResourceRef::new("vpc", "main"));
    let take = |builder: Builder, unit, id, at| {
        let name = name.clone();
        builder.write_with(unit, id, at, |_, rows| rows.name_taken = Some(name))
    };
    put(&store, take(Builder::default(), 0, a, 0)).await;
    assert_eq!(store.names(std::slice::from_ref(&name)).await.unwrap(), [(name.clone(), a)]);
    let batch = take(Builder::default(), 0, b, 0).write(1, id(), 0).batch;
    assert_eq!(conflicts(&store, &batch).await, [conflict(0, ConflictKind::Name)]);
    // Its holder may say it again.
    put(&store, take(Builder::default(), 0, a, 1)).await;
    let free = Builder::default().write_with(0, a, 2, |_, rows| rows.name_freed = Some(name.clone()));
    put(&store, free).await;
    assert_eq!(store.names(std::slice::from_ref(&name)).await.unwrap(), []);
    put(&store, take(Builder::default(), 0, b, 0)).await;
    assert_eq!(store.names(std::slice::from_ref(&name)).await.unwrap(), [(name, b)]);
}

pub async fn a_unit_may_hand_a_name_from_one_aggregate_to_another(store: Any) {
    let (a, b, name) = (id(), id(), ResourceRef::new("vpc", "main"));
    put(&store, Builder::default().write_with(0, a, 0, |_, rows| rows.name_taken = Some(name.clone()))).await;
    let hand_over = Builder::default()
        .write_with(0, b, 0, |_, rows| rows.name_taken = Some(name.clone()))
        .write_with(0, a, 1, |_, rows| rows.name_freed = Some(name.clone()));
    put(&store, hand_over).await;
    assert_eq!(store.names(std::slice::from_ref(&name)).await.unwrap(), [(name, b)]);
}

pub async fn two_units_of_a_batch_cannot_both_take_a_name(store: Any) {
    let (a, b, name) = (id(), id(), ResourceRef::new("vpc", "main"));
    let batch = Builder::default()
        .write_with(0, a, 0, |_, rows| rows.name_taken = Some(name.clone()))
        .write_with(1, b, 0, |_, rows| rows.name_taken = Some(name.clone()))
        .batch;
    // Not a name conflict yet: the first unit might have been lost.
    assert_eq!(conflicts(&store, &batch).await, [conflict(1, ConflictKind::Guard)]);
    assert_eq!(store.names(std::slice::from_ref(&name)).await.unwrap(), [(name, a)]);
}

pub async fn a_command_id_executes_once(store: Any) {
    let command = CommandId(Uuid::new_v4());
    put(&store, Builder::default().write(0, id(), 0).command(0, command)).await;
    let batch = Builder::default().write(0, id(), 0).command(0, command).write(1, id(), 0).batch;
    assert_eq!(conflicts(&store, &batch).await, [conflict(0, ConflictKind::Duplicate)]);
    let (twin, other) = (CommandId(Uuid::new_v4()), id());
    let batch =
        Builder::default().write(0, id(), 0).command(0, twin).write(1, other, 0).command(1, twin).batch;
    assert_eq!(conflicts(&store, &batch).await, [conflict(1, ConflictKind::Guard)]);
    let batch = Builder::default().write(0, other, 0).command(0, twin).batch;
    assert_eq!(conflicts(&store, &batch).await, [conflict(0, ConflictKind::Duplicate)]);
}

fn claim(id: AggregateId, kind: &KindRef, session: SessionId) -> Option<Option<ClaimRow>> {
    Some(Some(ClaimRow { id: resource(id), kind: kind.clone(), session }))
}

pub async fn a_cap_counts_live_claims_and_those_before_it_in_the_batch(store: Any) {
    let (kind, session) = (KindRef::new("vpc", 1), SessionId(Uuid::new_v4()));
    let policy = |max_inflight| {
        let policy = PolicyRow { kind: kind.clone(), max_inflight };
        move |_: &mut _, rows: &mut converge_event_store::InlineRows| rows.policy = Some(policy)
    };
    let the_kind = id();
    put(&store, Builder::default().write_with(0, the_kind, 0, policy(2))).await;
    let mut ids: Vec<AggregateId> = Vec::new();
    let mut batch = Builder::default();
    for unit in 0..4 {
        let claimed = id();
        ids.push(claimed);
        batch = batch
            .write_with(unit, claimed, 0, |_, rows| rows.claim = claim(claimed, &kind, session))
            .guard(unit, Guard::UnderCap { kind: kind.clone() });
    }
    // The first unit is lost for another reason, so it does not use the cap up.
    batch = batch.guard(0, Guard::Unmoved { id: id(), sequence: Sequence(9) });
    let lost = conflicts(&store, &batch.batch).await;
    assert_eq!(lost, [conflict(0, ConflictKind::Guard), conflict(3, ConflictKind::Guard)]);
    let mut held = store.claims_of(session, 10).await.unwrap();
    held.sort();
    let mut expected = vec![resource(ids[1]), resource(ids[2])];
    expected.sort();
    assert_eq!(held, expected);
    assert!(!passes(&store, Guard::UnderCap { kind: kind.clone() }).await);
    assert!(passes(&store, Guard::UnderCap { kind: KindRef::new("vpc", 2) }).await);
    put(&store, Builder::default().write_with(0, ids[1], 1, |_, rows| rows.claim = Some(None))).await;
    assert!(passes(&store, Guard::UnderCap { kind: kind.clone() }).await);
    put(&store, Builder::default().write_with(0, the_kind, 1, policy(1))).await;
    assert!(!passes(&store, Guard::UnderCap { kind: kind.clone() }).await);
    put(&store, Builder::default().write_with(0, the_kind, 2, policy(0))).await;
    assert!(passes(&store, Guard::UnderCap { kind }).await);
}

pub async fn a_cap_that_comes_late_counts_the_claims_that_live_already(store: Any) {
    let (kind, session) = (KindRef::new("vpc", 1), SessionId(Uuid::new_v4()));
    let policy = |max_inflight| {
        let policy = PolicyRow { kind: kind.clone(), max_inflight };
        move |_: &mut _, rows: &mut converge_event_store::InlineRows| rows.policy = Some(policy)
    };
    let under_cap = || Guard::UnderCap { kind: kind.clone() };
    let [the_kind, a, b, c] = [(); 4].map(|()| id());
    let claims = |builder: Builder, unit, a, at| {
        builder.write_with(unit, a, at, |_, rows| rows.claim = claim(a, &kind, session))
    };
    let ends =
        |builder: Builder, unit, a, at| builder.write_with(unit, a, at, |_, rows| rows.claim = Some(None));
    put(&store, Builder::default().write_with(0, the_kind, 0, policy(0))).await;
    put(&store, claims(claims(Builder::default(), 0, a, 0), 1, b, 0)).await;
    assert_eq!(store.live_claims(&kind).await.unwrap(), 0);
    // The cap comes in the batch of one more claim.
    put(&store, claims(Builder::default(), 0, c, 0).write_with(1, the_kind, 1, policy(3))).await;
    assert_eq!(store.live_claims(&kind).await.unwrap(), 3);
    assert!(!passes(&store, under_cap()).await);
    put(&store, ends(Builder::default(), 0, a, 1)).await;
    assert_eq!(store.live_claims(&kind).await.unwrap(), 2);
    assert!(passes(&store, under_cap()).await);
    // A claim that ends while nobody counts does not come back with the next cap.
    put(&store, Builder::default().write_with(0, the_kind, 2, policy(0))).await;
    assert_eq!(store.live_claims(&kind).await.unwrap(), 0);
    put(&store, ends(Builder::default(), 0, b, 1)).await;
    put(&store, Builder::default().write_with(0, the_kind, 3, policy(1))).await;
    assert_eq!(store.live_claims(&kind).await.unwrap(), 1);
    assert!(!passes(&store, under_cap()).await);
    // A policy that only changes its number keeps the count.
    put(&store, Builder::default().write_with(0, the_kind, 4, policy(2))).await;
    assert_eq!(store.live_claims(&kind).await.unwrap(), 1);
    assert!(passes(&store, under_cap()).await);
}

pub async fn a_removed_head_takes_its_narrow_rows_along(store: Any) {
    let (a, parent, kind) = (id(), id(), KindRef::new("vpc", 1));
    let session = SessionId(Uuid::new_v4());
    let full = Builder::default().write_with(0, a, 0, |_, rows| {
        rows.child = child_row(parent, ChildMark::Open);
        rows.queue =
            Some(Some(QueueRow { id: resource(a), kind: kind.clone(), priority: 0, due_at: Timestamp(5) }));
        rows.timer = Some(Some(TimerRow { id: resource(a), due_at: Timestamp(5) }));
        rows.claim = claim(a, &kind, session);
    });
    put(&store, full).await;
    assert_eq!(store.queue(&kind, None, 10).await.unwrap().len(), 1);
    put(&store, Builder::default().write_with(0, a, 1, |_, rows| rows.head_removed = true)).await;
    assert_eq!(store.heads(&[a]).await.unwrap(), []);
    assert_eq!(store.queue(&kind, None, 10).await.unwrap(), []);
    assert_eq!(store.due_timers(Timestamp(0), 10).await.unwrap(), []);
    assert_eq!(store.unsettled(None, 10).await.unwrap(), []);
    assert_eq!(store.claims_of(session, 10).await.unwrap(), []);
    assert_eq!(store.read_stream(a, Sequence(0), 10).await.unwrap().len(), 2);
}

pub async fn an_aggregate_that_comes_and_goes_in_one_batch_leaves_its_events_alone(store: Any) {
    let (a, b) = (id(), id());
    let gone = |builder: Builder, unit, a| {
        builder.write_with(unit, a, 0, |head, rows| {
            (head.name, rows.head_removed) = ("gone".to_owned(), true);
        })
    };
    put(&store, gone(Builder::default(), 0, a)).await;
    assert_eq!(store.heads(&[a]).await.unwrap(), []);
    assert_eq!(store.read_stream(a, Sequence(0), 10).await.unwrap().len(), 1);
    // Over a head that exists it loses, and its neighbour does not.
    put(&store, Builder::default().write(0, b, 0)).await;
    let batch = gone(Builder::default(), 0, b).write(1, id(), 0).batch;
    assert_eq!(conflicts(&store, &batch).await, [conflict(0, ConflictKind::Head)]);
    assert_eq!(store.heads(&[b]).await.unwrap().len(), 1);
}

pub async fn narrow_rows_follow_their_aggregate(store: Any) {
    let (kind, far) = (KindRef::new("vpc", 1), store.now().await.unwrap().plus_ms(3_600_000));
    let row = |id: AggregateId, priority, due_at| {
        Some(Some(QueueRow { id: resource(id), kind: kind.clone(), priority, due_at }))
    };
    let (a, b, c) = (id(), id(), id());
    let three = Builder::default()
        .write_with(0, a, 0, |_, rows| rows.queue = row(a, 2, Timestamp(10)))
        .write_with(1, b, 0, |_, rows| rows.queue = row(b, 0, Timestamp(20)))
        .write_with(2, c, 0, |_, rows| rows.queue = row(c, 0, far));
    put(&store, three).await;
    let ids = async |cursor| {
        let rows = store.queue(&kind, cursor, 10).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<ResourceId>>()
    };
    // By priority, then time; what is not due yet is not there.
    assert_eq!(ids(None).await, [resource(b), resource(a)]);
    assert_eq!(ids(Some((0, Timestamp(20), resource(b)))).await, [resource(a)]);
    let moved = Builder::default()
        .write_with(0, a, 1, |_, rows| rows.queue = row(a, 0, Timestamp(10)))
        .write_with(1, b, 1, |_, rows| rows.queue = row(b, 0, Timestamp(20)))
        .write_with(2, c, 1, |_, rows| rows.queue = Some(None));
    put(&store, moved).await;
    assert_eq!(ids(None).await, [resource(a), resource(b)]);
    // A change that says nothing about the row leaves it.
    put(&store, Builder::default().write(0, a, 2)).await;
    assert_eq!(ids(None).await, [resource(a), resource(b)]);
    put(&store, Builder::default().write_with(0, a, 3, |_, rows| rows.queue = Some(None))).await;
    assert_eq!(ids(None).await, [resource(b)]);
}

pub async fn a_batch_of_lost_units_leaves_no_trace(store: Any) {
    let a = id();
    put(&store, Builder::default().write(0, a, 0)).await;
    let before = store.log_head().await.unwrap();
    let batch = Builder::default().write(0, a, 4).command(0, CommandId(Uuid::new_v4())).batch;
    let appended = store.append(&batch).await.unwrap();
    assert_eq!((appended.count, appended.conflicts), (0, vec![conflict(0, ConflictKind::Head)]));
    assert_eq!(store.log_head().await.unwrap(), before);
}

pub async fn a_committed_batch_is_found_and_an_unknown_one_can_never_commit(store: Any) {
    let batch = Builder::default().write(0, id(), 0).batch;
    let appended = store.append(&batch).await.unwrap();
    let found = store.find_batch(batch.batch_id).await.unwrap().unwrap();
    assert_eq!((found.first, found.count, found.committed_at), (appended.first, 1, appended.committed_at));
    let lost = Builder::default().write(0, id(), 0).batch;
    assert_eq!(store.find_batch(lost.batch_id).await.unwrap(), None);
    // It was still on its way: having been called lost, it must be lost.
    assert!(matches!(store.append(&lost).await, Err(StoreError::Unavailable(_))));
    assert_eq!(store.log_head().await.unwrap().position, Position(1));
    assert_eq!(store.find_batch(BatchId(Uuid::new_v4())).await.unwrap(), None);
}

pub async fn commit_times_never_go_back_and_reads_carry_them(store: Any) {
    let mut times = Vec::new();
    for _ in 0..5 {
        let batch = Builder::default().write(0, id(), 0).write(1, id(), 0).batch;
        let at = store.append(&batch).await.unwrap().committed_at;
        times.extend([at, at]);
    }
    assert!(times.is_sorted());
    let read: Vec<Timestamp> =
        store.read(Position(0), 100).await.unwrap().iter().map(|event| event.committed_at).collect();
    assert_eq!(read, times);
    let tail: Vec<Timestamp> =
        store.read(Position(3), 2).await.unwrap().iter().map(|event| event.committed_at).collect();
    assert_eq!(tail, times[3..5]);
}

pub async fn streams_and_the_log_are_read_in_pages(store: Any) {
    let a = id();
    for sequence in 0..5 {
        put(&store, Builder::default().write(0, a, sequence).write(1, id(), 0)).await;
    }
    let sequences = async |after, limit| {
        let events = store.read_stream(a, Sequence(after), limit).await.unwrap();
        events.iter().map(|event| event.sequence.0).collect::<Vec<u64>>()
    };
    assert_eq!(sequences(0, 2).await, [1, 2]);
    assert_eq!(sequences(2, 100).await, [3, 4, 5]);
    assert_eq!(sequences(5, 100).await, [0_u64; 0]);
    let page = store.read(Position(4), 3).await.unwrap();
    assert_eq!(page.iter().map(|event| event.position.0).collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!(page[0].metadata.get("actor").map(String::as_str), Some("test"));
}

pub async fn the_bearers_of_a_kinds_names_are_listed_in_order(store: Any) {
    let (a, b, other) = (id(), id(), id());
    let named = |kind: &str, name: &str| Some(ResourceRef::new(kind, name));
    let batch = Builder::default()
        .write_with(0, b, 0, |_, rows| rows.name_taken = named("vpc", "b"))
        .write_with(1, a, 0, |_, rows| rows.name_taken = named("vpc", "a"))
        .write_with(2, other, 0, |_, rows| rows.name_taken = named("vpcs", "c"));
    put(&store, batch).await;
    let read = async |after, limit| store.names_of_kind("vpc", after, limit).await.unwrap();
    assert_eq!(read("", 10).await, [("a".to_owned(), resource(a)), ("b".to_owned(), resource(b))]);
    assert_eq!(read("", 1).await.len(), 1);
    assert_eq!(read("a", 10).await, [("b".to_owned(), resource(b))]);
}

pub async fn what_holds_a_teardown_back_is_asked_for_many_at_once(store: Any) {
    let (parent, leaf, free) = (id(), id(), id());
    let batch = Builder::default()
        .write(0, parent, 0)
        .write_with(1, leaf, 0, |head, rows| {
            head.parent = Some(resource(parent));
            rows.edges_added = vec![resource(parent)];
        })
        .write(2, free, 0);
    put(&store, batch).await;
    let mut held = store.held(&[resource(free), resource(parent), resource(leaf)]).await.unwrap();
    held.sort_by_key(|held| held.id != resource(parent));
    assert_eq!((held[0].by_dependents, held[0].by_children), (true, true));
    assert!(held[1..].iter().all(|held| !held.by_dependents && !held.by_children), "{held:?}");
    assert_eq!(held.len(), 3);
}

pub async fn beginnings_of_many_streams_are_read_at_once(store: Any) {
    let (a, b) = (id(), id());
    for sequence in 0..4 {
        put(&store, Builder::default().write(0, a, sequence).write(1, b, sequence)).await;
    }
    let read = async |streams: &[(AggregateId, u64)], before, each| {
        let streams: Vec<_> = streams.iter().map(|(id, end)| (*id, Sequence(*end))).collect();
        let events = store.read_beginnings(&streams, Position(before), each).await.unwrap();
        events.iter().map(|event| (event.aggregate_id, event.sequence.0)).collect::<Vec<_>>()
    };
    assert_eq!(read(&[(b, 2), (a, 1), (id(), 9)], 100, 10).await, [(b, 1), (b, 2), (a, 1)]);
    assert_eq!(read(&[(a, 4), (b, 4)], 4, 10).await, [(a, 1), (a, 2), (b, 1)], "before the position only");
    assert_eq!(read(&[(a, 4), (b, 4)], 100, 1).await, [(a, 1), (b, 1)]);
}

pub async fn timers_at_the_same_instant_come_together(store: Any) {
    let mut batch = Builder::default();
    for (unit, due_at) in [(0, 10), (1, 10), (2, 10), (3, 20)] {
        let a = id();
        let row = TimerRow { id: resource(a), due_at: Timestamp(due_at) };
        batch = batch.write_with(unit, a, 0, |_, rows| rows.timer = Some(Some(row)));
    }
    let (later, at) = (id(), store.now().await.unwrap().plus_ms(60_000));
    let row = TimerRow { id: resource(later), due_at: at };
    put(&store, batch.write_with(4, later, 0, |_, rows| rows.timer = Some(Some(row)))).await;
    // Cut inside the tie, the next page would start behind it.
    let page = store.due_timers(Timestamp(0), 2).await.unwrap();
    assert_eq!(page.iter().map(|row| row.due_at.0).collect::<Vec<_>>(), [10, 10, 10]);
    assert_eq!(store.due_timers(Timestamp(10), 2).await.unwrap().len(), 1);
    assert_eq!(store.due_timers(Timestamp(20), 2).await.unwrap(), []);
    assert_eq!(store.next_timer_in_ms(Timestamp(0)).await.unwrap(), Some(0));
    let wait = store.next_timer_in_ms(Timestamp(20)).await.unwrap().unwrap();
    assert!((1..=60_000).contains(&wait), "{wait}");
    assert_eq!(store.next_timer_in_ms(at).await.unwrap(), None);
}

pub async fn sessions_without_a_beat_that_hold_claims_are_dead(store: Any) {
    let kinds = [KindRef::new("account", 1), KindRef::new("vpc", 1), KindRef::new("vpc", 2)];
    let sessions: Vec<SessionId> = (0..3).map(|_| SessionId(Uuid::new_v4())).collect();
    let mut batch = Builder::default();
    for (unit, (session, kind)) in (0..).zip(sessions.iter().flat_map(|s| kinds.iter().map(move |k| (s, k))))
    {
        let a = id();
        batch = batch.write_with(unit, a, 0, |head, rows| {
            head.kind = kind.kind.clone();
            rows.claim = claim(a, kind, *session);
        });
    }
    put(&store, batch).await;
    let member = Member {
        session: sessions[0],
        role: "all".to_owned(),
        host: "here".to_owned(),
        broker_address: String::new(),
        served: vec!["tgw/v1".to_owned(), "vpc/v2".to_owned()],
    };
    let at = store.beat(&member).await.unwrap();
    assert!((store.now().await.unwrap().0 - at.0).abs() < 60_000);
    let mut dead = store.dead_sessions(3_600_000).await.unwrap();
    dead.sort();
    let mut expected = sessions[1..].to_vec();
    expected.sort();
    assert_eq!(dead, expected);
    assert_eq!(store.claims_of(sessions[1], 10).await.unwrap().len(), 3);
    assert_eq!(store.claims_of(sessions[1], 2).await.unwrap().len(), 2);
    let members = store.members().await.unwrap();
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].0, member);
    store.remove_member(sessions[0]).await.unwrap();
    assert_eq!(store.dead_sessions(3_600_000).await.unwrap().len(), 3);
}

pub async fn a_dead_session_is_named_until_it_is_found_to_hold_nothing(store: Any) {
    let (kind, [first, second]) = (KindRef::new("vpc", 1), [(); 2].map(|()| SessionId(Uuid::new_v4())));
    let a = id();
    let holds = |at, session| {
        Builder::default().write_with(0, a, at, |_, rows| rows.claim = claim(a, &kind, session))
    };
    put(&store, holds(0, first)).await;
    assert_eq!(store.dead_sessions(1000).await.unwrap(), [first]);
    assert_eq!(store.claims_of(first, 10).await.unwrap(), [resource(a)]);
    // A claim that moves belongs to its new session alone.
    put(&store, holds(1, second)).await;
    assert_eq!(store.claims_of(first, 10).await.unwrap(), []);
    assert_eq!(store.dead_sessions(1000).await.unwrap(), [second]);
    assert_eq!(store.claims_of(second, 10).await.unwrap(), [resource(a)]);
    put(&store, Builder::default().write_with(0, a, 2, |_, rows| rows.claim = Some(None))).await;
    assert_eq!(store.claims_of(second, 10).await.unwrap(), []);
    assert_eq!(store.dead_sessions(1000).await.unwrap(), []);
    put(&store, holds(3, first)).await;
    assert_eq!(store.dead_sessions(1000).await.unwrap(), [first]);
}

pub async fn staged_items_come_back_in_order_and_replace_themselves(store: Any) {
    let (root, claim_id) = (resource(id()), ClaimId(Uuid::new_v4()));
    let item = |ordinal, part, payload: &str| StagedItem { ordinal, part, payload: payload.to_owned() };
    let items = [item(1, StagedPart::Edge, "{\"b\":1}"), item(0, StagedPart::Child, "{\"a\":1}")];
    store.stage(root, claim_id, &items).await.unwrap();
    store.stage(root, claim_id, &[item(0, StagedPart::Child, "{\"a\":2}")]).await.unwrap();
    let staged = store.staged(root, claim_id, -1, 10).await.unwrap();
    assert_eq!(staged, [item(0, StagedPart::Child, "{\"a\":2}"), item(1, StagedPart::Edge, "{\"b\":1}")]);
    assert_eq!(store.staged(root, claim_id, 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.staged(root, ClaimId(Uuid::new_v4()), -1, 10).await.unwrap(), []);
    assert_eq!(store.staged_at(root, claim_id, &[1, 0, 7]).await.unwrap(), staged);
    assert_eq!(store.staged_at(root, claim_id, &[1]).await.unwrap(), staged[1..]);
    store.unstage(root, claim_id).await.unwrap();
    assert_eq!(store.staged_at(root, claim_id, &[1]).await.unwrap(), []);
    assert_eq!(store.staged(root, claim_id, -1, 10).await.unwrap(), []);
}

pub async fn the_digest_of_children_counts_those_not_left_out(store: Any) {
    let (parent, a, b) = (id(), id(), id());
    let child = |builder: Builder, unit, child, at, standing, outward| {
        builder.write_with(unit, child, at, |head, _| {
            head.parent = Some(resource(parent));
            head.standing = Some(standing);
            head.outward = outward;
        })
    };
    let two = child(Builder::default(), 0, a, 0, Standing::AllReady, 1);
    put(&store, child(two, 1, b, 0, Standing::Impaired, 1)).await;
    let (count, first) = store.children_digest(resource(parent)).await.unwrap();
    assert_eq!((count, first.len()), (2, 64));
    // Bookkeeping that is not outward changes nothing.
    put(&store, child(Builder::default(), 0, a, 1, Standing::AllReady, 1)).await;
    assert_eq!(store.children_digest(resource(parent)).await.unwrap(), (2, first.clone()));
    put(&store, child(Builder::default(), 0, a, 2, Standing::AllReady, 3)).await;
    let (count, second) = store.children_digest(resource(parent)).await.unwrap();
    assert!(count == 2 && second != first);
    put(&store, child(Builder::default(), 0, b, 1, Standing::LeftOut, 2)).await;
    assert_eq!(store.children_digest(resource(parent)).await.unwrap().0, 1);
    assert_eq!(store.children_digest(resource(id())).await.unwrap().0, 0);
}

pub async fn data_that_the_database_refuses_is_a_data_error(store: Any) {
    let a = id();
    let batch = Builder::default().write_with(0, a, 0, |head, _| head.name = "a\0b".to_owned()).batch;
    assert!(matches!(store.append(&batch).await, Err(StoreError::Data(_))));
    assert_eq!(store.heads(&[a]).await.unwrap(), []);
    assert_eq!(head(a).id, a);
}

pub async fn the_chain_can_be_followed_by_its_ends(store: Any) {
    assert_eq!(store.log_head().await.unwrap().chain, [0; 32]);
    put(&store, Builder::default().write(0, id(), 0).write(1, id(), 0)).await;
    let first = store.log_head().await.unwrap();
    put(&store, Builder::default().write(0, id(), 0)).await;
    let second = store.log_head().await.unwrap();
    assert_ne!(first.chain, second.chain);
    assert_eq!(store.chain_at(Position(2)).await.unwrap(), Some(first.chain));
    assert_eq!(store.chain_at(Position(3)).await.unwrap(), Some(second.chain));
    assert_eq!(store.chain_at(Position(1)).await.unwrap(), None);
    assert_eq!(store.chain_at(Position(9)).await.unwrap(), None);
}
