//! The columns of heads: new ones and existing ones apart, each with the keys of its narrow rows.

use super::{bigint, unit_index, version};
use crate::codes::{mark_code, phase_code, standing_code};
use crate::store::{HeadChange, StoreError};
use uuid::Uuid;

/// What becomes of an aggregate's row in a narrow table.
const LEAVE: i16 = 0;
const DELETE: i16 = 1;
const SET: i16 = 2;

/// What is stored of a head whether it is new or not.
#[derive(Default)]
pub(in super::super) struct Stored<'a> {
    pub unit: Vec<i32>,
    pub id: Vec<Uuid>,
    pub sequence: Vec<i64>,
    pub kind: Vec<&'a str>,
    pub kind_version: Vec<i16>,
    pub phase: Vec<Option<i16>>,
    pub standing: Vec<Option<i16>>,
    pub subtree: Vec<Option<i16>>,
    pub pass_id: Vec<Option<Uuid>>,
    pub outward: Vec<i64>,
    pub state: Vec<String>,
}

/// The narrow rows that heads have afterwards, as far as their ops say so.
#[derive(Default)]
pub(in super::super) struct Narrow {
    pub queue_version: Vec<Option<i16>>,
    pub queue_priority: Vec<Option<i16>>,
    pub queue_due_at: Vec<Option<i64>>,
    pub timer_due_at: Vec<Option<i64>>,
    pub child_mark: Vec<Option<i16>>,
    pub child_parent: Vec<Option<Uuid>>,
    pub claim_version: Vec<Option<i16>>,
    pub claim_session: Vec<Option<Uuid>>,
}

/// Heads to insert.
#[derive(Default)]
pub(in super::super) struct NewHeads<'a> {
    pub stored: Stored<'a>,
    pub narrow: Narrow,
    pub aggregate_type: Vec<&'static str>,
    pub name: Vec<&'a str>,
    pub parent: Vec<Option<Uuid>>,
}

/// Heads to update or remove.
#[derive(Default)]
pub(in super::super) struct OldHeads<'a> {
    pub stored: Stored<'a>,
    pub narrow: Narrow,
    pub expected: Vec<i64>,
    pub removed: Vec<bool>,
    pub queue_op: Vec<i16>,
    pub timer_op: Vec<i16>,
    pub child_op: Vec<i16>,
    pub claim_op: Vec<i16>,
}

impl<'a> Stored<'a> {
    fn push(&mut self, change: &'a HeadChange) -> Result<(), StoreError> {
        let head = &change.head;
        self.unit.push(unit_index(change.unit)?);
        self.id.push(head.id.0);
        self.sequence.push(bigint(change.sequence.0, "sequence")?);
        self.kind.push(&head.kind);
        self.kind_version.push(head.kind_version);
        self.phase.push(head.phase.map(phase_code));
        self.standing.push(head.standing.map(standing_code));
        self.subtree.push(head.subtree.map(standing_code));
        self.pass_id.push(head.pass_id.map(|pass| pass.0));
        self.outward.push(head.outward);
        self.state.push(if change.rows.head_removed {
            // The row goes away; do not ship its state.
            "null".to_owned()
        } else {
            head.state.to_json().map_err(|error| StoreError::Data(error.to_string()))?
        });
        Ok(())
    }
}

impl Narrow {
    fn push(&mut self, change: &HeadChange) -> Result<(), StoreError> {
        let rows = &change.rows;
        let queue = rows.queue.as_ref().and_then(Option::as_ref);
        self.queue_version.push(queue.map(|row| version(&row.kind)).transpose()?);
        self.queue_priority.push(queue.map(|row| row.priority));
        self.queue_due_at.push(queue.map(|row| row.due_at.0));
        self.timer_due_at.push(rows.timer.as_ref().and_then(Option::as_ref).map(|row| row.due_at.0));
        let child = rows.child.as_ref().and_then(Option::as_ref);
        self.child_mark.push(child.map(|row| mark_code(row.mark)));
        self.child_parent.push(child.map(|row| row.parent.0));
        let claim = rows.claim.as_ref().and_then(Option::as_ref);
        self.claim_version.push(claim.map(|row| version(&row.kind)).transpose()?);
        self.claim_session.push(claim.map(|row| row.session.0));
        Ok(())
    }
}

impl<'a> NewHeads<'a> {
    pub(super) fn push(&mut self, change: &'a HeadChange) -> Result<(), StoreError> {
        self.stored.push(change)?;
        self.narrow.push(change)?;
        self.aggregate_type.push(change.aggregate_type.as_str());
        self.name.push(&change.head.name);
        self.parent.push(change.head.parent.map(|parent| parent.0));
        Ok(())
    }
}

impl<'a> OldHeads<'a> {
    pub(super) fn push(&mut self, change: &'a HeadChange) -> Result<(), StoreError> {
        let op = |change: Option<bool>| match change {
            None => LEAVE,
            Some(false) => DELETE,
            Some(true) => SET,
        };
        let rows = &change.rows;
        self.stored.push(change)?;
        self.narrow.push(change)?;
        self.expected.push(bigint(change.expected.0, "sequence")?);
        self.removed.push(rows.head_removed);
        self.queue_op.push(op(rows.queue.as_ref().map(Option::is_some)));
        self.timer_op.push(op(rows.timer.as_ref().map(Option::is_some)));
        self.child_op.push(op(rows.child.as_ref().map(Option::is_some)));
        self.claim_op.push(op(rows.claim.as_ref().map(Option::is_some)));
        Ok(())
    }

    pub(super) fn removals(&self) -> bool {
        self.removed.iter().any(|removed| *removed)
    }
}

/// Which of the function's optional statements have anything to do, in the order of its `p_has`.
pub(super) fn todo(new: &NewHeads<'_>, old: &OldHeads<'_>) -> Vec<bool> {
    let removal = old.removals();
    let goes = |ops: &[i16]| removal || ops.iter().any(|op| *op != LEAVE);
    fn comes<T>(new: &[Option<T>], ops: &[i16]) -> bool {
        new.iter().any(Option::is_some) || ops.contains(&SET)
    }
    vec![
        goes(&old.queue_op),
        goes(&old.timer_op),
        goes(&old.child_op),
        goes(&old.claim_op),
        removal,
        comes(&new.narrow.queue_due_at, &old.queue_op),
        comes(&new.narrow.timer_due_at, &old.timer_op),
        comes(&new.narrow.child_mark, &old.child_op),
        comes(&new.narrow.claim_version, &old.claim_op),
    ]
}
