//! A program and everything it started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::time::Duration;
use tokio::process::Child;

/// What a program asked to end gets for cleaning up.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// Ends the group when dropped, unless it has ended.
///
/// Signalling by group id is safe only while the id cannot belong to someone else: as long as the leader is not reaped,
/// or any member lives. [`Group::reaped`] marks the end of that.
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    /// The group of a child that was started with `process_group(0)`: the child leads it.
    pub(super) fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { leader }
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // The only error is that nobody is left, which is what was wanted.
            let _ = kill_process_group(leader, signal);
        }
    }

    /// At once.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.leader = None;
    }

    /// The leader is gone and so are its children, or they no longer concern us.
    pub(super) fn reaped(&mut self) {
        self.leader = None;
    }

    /// Politely first: a program may hold a lock or have something half made.
    pub(super) async fn end(&mut self, leader: &mut Child) {
        self.signal(Signal::TERM);
        let gone = tokio::time::timeout(TERM_GRACE, leader.wait()).await;
        // The leader may be reaped now while its children ignore the signal; members keep the id theirs. When none is
        // left the id is free, and could be another's only if the kernel had run through all ids in this instant.
        self.kill();
        if gone.is_err() {
            let _ = leader.wait().await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
