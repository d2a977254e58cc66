//! What a task that did not fail has to say.

use crate::composition::Composition;
use crate::condition::Condition;
use crate::json::Json;
use std::time::Duration;

/// A success, built part by part. A part that is left out keeps what the resource had; a part that the reaction's `emits`
/// does not list is dropped by the engine, visibly.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub(crate) status: Option<Json>,
    pub(crate) conditions: Option<Vec<Condition>>,
    pub(crate) healthy: Option<bool>,
    pub(crate) changed: Option<bool>,
    pub(crate) differs: Vec<String>,
    pub(crate) in_progress: bool,
    pub(crate) requeue_after: Option<Duration>,
    pub(crate) composition: Composition,
    pub(crate) output: Option<Json>,
}

impl Outcome {
    /// An empty success.
    pub fn new() -> Self {
        Self::default()
    }

    /// Work that is under way and needs another look: no failure, and no attempt is spent.
    pub fn in_progress(requeue_after: Duration) -> Self {
        Self { in_progress: true, requeue_after: Some(requeue_after), ..Self::default() }
    }

    /// Replaces this reaction's part of the status; a JSON object.
    #[must_use]
    pub fn status(mut self, status: impl Into<Json>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// Adds a condition.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.conditions.get_or_insert_default().push(condition);
        self
    }

    /// Replaces all conditions of this reaction; an empty list clears them.
    #[must_use]
    pub fn conditions(mut self, conditions: Vec<Condition>) -> Self {
        self.conditions = Some(conditions);
        self
    }

    /// Whether what was made works.
    #[must_use]
    pub fn healthy(mut self, healthy: bool) -> Self {
        self.healthy = Some(healthy);
        self
    }

    /// Whether this task altered something in the world.
    #[must_use]
    pub fn changed(mut self, changed: bool) -> Self {
        self.changed = Some(changed);
        self
    }

    /// Rooted pointers at which the world differed from the spec.
    #[must_use]
    pub fn differs(mut self, pointers: impl IntoIterator<Item = String>) -> Self {
        self.differs.extend(pointers);
        self
    }

    /// Asks for another look; rounded up to whole seconds on the wire.
    #[must_use]
    pub fn requeue_after(mut self, after: Duration) -> Self {
        self.requeue_after = Some(after);
        self
    }

    /// A composer's whole desired set.
    #[must_use]
    pub fn composition(mut self, composition: Composition) -> Self {
        self.composition = composition;
        self
    }

    /// An operation's answer.
    #[must_use]
    pub fn output(mut self, output: impl Into<Json>) -> Self {
        self.output = Some(output.into());
        self
    }
}

/// For tests of providers: reading back what was built.
impl Outcome {
    /// The status, if one was set.
    pub fn get_status(&self) -> Option<&Json> {
        self.status.as_ref()
    }

    /// Whether it altered something, if it said so.
    pub fn get_changed(&self) -> Option<bool> {
        self.changed
    }

    /// Whether it is healthy, if it said so.
    pub fn get_healthy(&self) -> Option<bool> {
        self.healthy
    }

    /// The composition.
    pub fn get_composition(&self) -> &Composition {
        &self.composition
    }

    /// Whether it is still under way, and when to look again.
    pub fn get_requeue(&self) -> (bool, Option<Duration>) {
        (self.in_progress, self.requeue_after)
    }
}
