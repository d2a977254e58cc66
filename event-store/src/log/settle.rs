//! After the append: who is told what, and what the cache and the tail learn.

use super::cache::Ticket;
use super::decide::{Nothing, Verdict};
use super::draft::{Sealed, step_results};
use super::handle::Inner;
use super::queue::Pending;
use super::{Committed, ExecuteError};
use crate::store::{Appended, Batch, Before, ConflictKind, HeadChange, StoreError, StoredEvent};
use converge_domain::{AggregateId, Position};
use rand::Rng;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;

impl Pending {
    /// Counts a conflict; false when there were enough. From the fourth on it pauses a little, so that writers
    /// who keep in step fall out of it.
    pub(super) fn count_attempt(&mut self, attempts_max: u32) -> bool {
        self.attempts += 1;
        if self.attempts > 3 {
            let pause_us = rand::rng().random_range(0..=u64::from(self.attempts) * 1000);
            self.not_before = Some(Instant::now() + Duration::from_micros(pause_us));
        }
        self.attempts < self.group.attempts_max.unwrap_or(attempts_max)
    }
}

impl Inner {
    /// Appends a sealed draft and answers its groups; returns those to be decided again.
    pub(super) async fn commit(&self, sealed: Sealed, ticket: Ticket) -> Vec<Pending> {
        let mut again = Vec::new();
        let mut parts = vec![sealed];
        while let Some(mut part) = parts.pop() {
            if part.groups.is_empty() {
                continue;
            }
            match self.append_known(&mut part.batch).await {
                Ok(appended) => self.settle(part, &appended, ticket, &mut again),
                Err(StoreError::Data(_)) if part.unit_count() > 1 => {
                    // Half and half again, until the unit that the database refuses stands alone.
                    let (low, high) = part.split();
                    parts.extend([high, low]);
                }
                Err(StoreError::Data(_)) if part.groups.len() > 1 => {
                    again.extend(part.groups.into_values().map(|group| alone(group.pending)));
                }
                Err(error) => {
                    self.cache.evict(part.batch.heads.iter().map(|change| change.head.id));
                    for group in part.groups.into_values() {
                        group.pending.answer(Err(ExecuteError::Store(error.clone())));
                    }
                }
            }
        }
        again
    }

    fn settle(&self, part: Sealed, appended: &Appended, ticket: Ticket, again: &mut Vec<Pending>) {
        let Sealed { groups, unit_of, group_of, bases, batch } = part;
        self.clock.observe(appended.committed_at);
        let lost: HashMap<u32, ConflictKind> =
            appended.conflicts.iter().map(|conflict| (conflict.unit, conflict.kind)).collect();
        self.learn(&batch, &lost, ticket);

        let mut events: Vec<StoredEvent> = Vec::with_capacity(batch.events.len());
        let mut own: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut last: HashMap<usize, Position> = HashMap::new();
        for (event, (group, demotion)) in batch.events.into_iter().zip(group_of) {
            if lost.contains_key(&event.unit) {
                continue;
            }
            let position = Position(appended.first.0 + events.len() as u64);
            if !demotion {
                own.entry(group).or_default().push(events.len());
            }
            last.insert(group, position);
            let base = bases.get(&event.aggregate_id);
            let before = Before(base.filter(|base| base.sequence + 1 == event.sequence.0).cloned());
            events.push(StoredEvent {
                position,
                aggregate_type: event.aggregate_type,
                aggregate_id: event.aggregate_id,
                sequence: event.sequence,
                event: event.event,
                metadata: event.metadata,
                committed_at: appended.committed_at,
                before,
            });
        }
        let end = Position(appended.first.0 + appended.count.max(1) - 1);
        let mut answers = Vec::with_capacity(groups.len());
        let mut members: HashMap<u32, usize> = HashMap::new();
        for group in groups.keys() {
            *members.entry(unit_of[*group]).or_default() += 1;
        }
        for (index, group) in groups {
            let unit = unit_of[index];
            match lost.get(&unit) {
                Some(kind) => self.lose(group.pending, *kind, members[&unit] > 1, again),
                None => {
                    let own: Vec<&StoredEvent> =
                        own.get(&index).into_iter().flatten().map(|at| &events[*at]).collect();
                    let committed = Committed {
                        position: last.get(&index).copied().unwrap_or(end),
                        committed_at: appended.committed_at,
                        steps: step_results(group.states, &own),
                    };
                    answers.push((group.pending, committed));
                }
            }
        }
        // The tail first: a caller who has his answer finds his events there.
        self.tail.publish(events);
        for (pending, committed) in answers {
            pending.answer(Ok(committed));
        }
    }

    /// Post-states of survivors go into the cache, before the tail can move past them; whatever a lost unit was
    /// decided on goes out.
    fn learn(&self, batch: &Batch, lost: &HashMap<u32, ConflictKind>, ticket: Ticket) {
        let is_gone = |change: &&HeadChange| lost.contains_key(&change.unit) || change.rows.head_removed;
        let mut gone: Vec<AggregateId> =
            batch.heads.iter().filter(is_gone).map(|change| change.head.id).collect();
        let kept = batch.heads.iter().filter(|change| !is_gone(change));
        self.cache.put_many(
            ticket,
            kept.map(|change| (change.head.id, change.sequence, change.head.state.clone())),
        );
        gone.extend(batch.guards.iter().filter(|(unit, _)| lost.contains_key(unit)).filter_map(
            |(_, guard)| match super::guards::subject(guard) {
                super::guards::Subject::Head(id) => Some(id),
                _ => None,
            },
        ));
        self.cache.evict(gone);
    }

    /// A lost group: told if the reason is final and certainly its own, else decided again.
    fn lose(&self, mut pending: Pending, kind: ConflictKind, shared: bool, again: &mut Vec<Pending>) {
        match kind {
            // One group of the unit is meant; which one shows when each goes alone.
            ConflictKind::Name | ConflictKind::Duplicate if shared => again.push(alone(pending)),
            ConflictKind::Name => pending.answer(Err(ExecuteError::NameTaken)),
            ConflictKind::Duplicate => pending.answer(Err(ExecuteError::Duplicate)),
            ConflictKind::Head | ConflictKind::Guard => {
                if pending.count_attempt(self.config.attempts_max) {
                    again.push(pending);
                } else {
                    let attempts = pending.attempts;
                    pending.answer(Err(ExecuteError::Conflict { attempts }));
                }
            }
        }
    }

    /// Answers groups that change nothing or are refused, once the cached states they were decided on are proven current;
    /// returns the others.
    ///
    /// The proof: the store says where the log ends. If this process has seen the log up to there, no entry of the
    /// cache is stale (see `cache`), so every decision was right at that moment. Otherwise the heads themselves are read, and
    /// a head whose sequence is the decided one proves its own decision.
    pub(super) async fn answer_nothing(&self, groups: Vec<Nothing>) -> Vec<Pending> {
        if groups.is_empty() {
            return Vec::new();
        }
        let seen = self.tail.head();
        let end = match self.read_with_patience(|store| async move { store.log_head().await }).await {
            Ok(end) => end,
            Err(error) => return fail(groups, &error),
        };
        let unproven: HashSet<AggregateId> = if end.position <= seen {
            HashSet::new()
        } else {
            groups.iter().flat_map(|group| group.unproven.iter().map(|(id, _)| *id)).collect()
        };
        let ids: Vec<AggregateId> = unproven.iter().copied().collect();
        let heads = self.read_with_patience(|store| {
            let ids = ids.clone();
            async move { if ids.is_empty() { Ok(Vec::new()) } else { store.heads(&ids).await } }
        });
        let current: BTreeMap<AggregateId, _> = match heads.await {
            Ok(heads) => heads.into_iter().map(|head| (head.id, head.sequence)).collect(),
            Err(error) => return fail(groups, &error),
        };
        let mut again = Vec::new();
        for group in groups {
            let stale: Vec<AggregateId> = group
                .unproven
                .iter()
                .filter(|(id, sequence)| {
                    unproven.contains(id) && current.get(id).map_or(0, |at| at.0) != sequence.0
                })
                .map(|(id, _)| *id)
                .collect();
            if stale.is_empty() {
                group.pending.answer(match group.verdict {
                    Verdict::Unchanged(states) => Ok(Committed {
                        position: end.position,
                        committed_at: end.committed_at.unwrap_or_default(),
                        steps: step_results(states, &[]),
                    }),
                    Verdict::Refused { step, error } => Err(ExecuteError::Domain { step, error }),
                });
            } else {
                self.cache.evict(stale);
                let mut pending = group.pending;
                // Whatever was called new is there after all, or was a stale guess among others: look for all of it.
                pending.group.new.clear();
                again.push(pending);
            }
        }
        again
    }
}

fn fail(groups: Vec<Nothing>, error: &StoreError) -> Vec<Pending> {
    for group in groups {
        group.pending.answer(Err(ExecuteError::Store(error.clone())));
    }
    Vec::new()
}

fn alone(mut pending: Pending) -> Pending {
    pending.solo = true;
    pending
}
