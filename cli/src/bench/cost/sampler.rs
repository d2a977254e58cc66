//! Looks at memory again and again while a span runs: a peak between two spans' ends would go unseen.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::super::processes::Pids;
use super::ProcessMemory;
use super::process::{Memory, proportional_kib_of_tree};

const EVERY: Duration = Duration::from_secs(1);
/// Dividing pages among those who share them means walking all pages of all sessions: some milliseconds each time.
const POSTGRES_EVERY: u32 = 5;

/// A task that looks, until it is stopped.
pub struct Sampler {
    stop: CancellationToken,
    task: JoinHandle<ProcessMemory>,
}

impl Sampler {
    /// Looks now and every second.
    pub fn start(pids: Arc<Pids>, postgres: Option<u32>) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(sample(pids, postgres, stop.clone()));
        Self { stop, task }
    }

    /// Looks once more; what was seen.
    pub async fn stop(self) -> ProcessMemory {
        self.stop.cancel();
        self.task.await.unwrap_or_default()
    }
}

async fn sample(pids: Arc<Pids>, postgres: Option<u32>, stop: CancellationToken) -> ProcessMemory {
    let mut seen = ProcessMemory::default();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_u32.. {
        let last = tokio::select! {
            () = stop.cancelled() => true,
            _ = ticks.tick() => false,
        };
        for (memory, pid) in [
            (&mut seen.server, pids.server()),
            (&mut seen.worker, pids.worker()),
            (&mut seen.bench, std::process::id()),
        ] {
            look(memory, pid);
        }
        if last || round.is_multiple_of(POSTGRES_EVERY) {
            seen.postgres_pss_kib = postgres.map(proportional_kib_of_tree);
            seen.postgres_peak_pss_kib = seen.postgres_peak_pss_kib.max(seen.postgres_pss_kib);
        }
        if last {
            break;
        }
    }
    seen
}

/// The peak is the highest that any process in this role has reached: a worker may be killed and started anew.
fn look(memory: &mut Memory, pid: u32) {
    let now = Memory::of(pid);
    *memory = Memory {
        rss_kib: now.rss_kib,
        peak_rss_kib: memory.peak_rss_kib.max(now.peak_rss_kib).max(now.rss_kib),
    };
}
