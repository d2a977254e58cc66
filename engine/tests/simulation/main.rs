//! Worlds that anything may happen to, over the in-memory store and a paused clock.
//!
//! `CONVERGE_WORLDS` is how many worlds are tried (default 200) and `CONVERGE_SEED` the first one's seed; a failure
//! prints the seed of its world, which alone brings the same actions and the same faults again.

#![expect(clippy::expect_used, reason = "a test stops at what is not there")]

mod action;
mod desired;
mod every_event;
mod mortal;
mod process;
mod proof;
mod provider;
mod run;
mod settled;
#[path = "../world/mod.rs"]
mod world;

use action::{Action, actions};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use run::Run;

const WORLDS: u64 = 200;
/// Smaller worlds tried for one that failed.
const SHRINKS_MAX: u32 = 200;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// A clock that moves on only when nobody has anything to do.
fn on_a_paused_clock<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(run)
}

/// One world, from its first action to a quiet end.
async fn live_through(seed: u64, actions: &[Action]) -> Result<(), String> {
    let mut run = Run::new(seed).await;
    let ended = Box::pin(to_the_end(&mut run, actions)).await;
    // A broken invariant explains a wrong end better than the end does.
    proof::check(&run.events().await)?;
    ended
}

async fn to_the_end(run: &mut Run, actions: &[Action]) -> Result<(), String> {
    for action in actions {
        run.act(action).await?;
    }
    run.calm_down().await;
    run.settle().await?;
    settled::as_far_as_it_goes(run).await?;
    let desired = run.desired.clone();
    for (root, tree) in desired {
        run.declare(root, tree.mended()).await?;
    }
    run.settle().await?;
    settled::as_far_as_it_goes(run).await?;
    settled::as_desired(run).await?;
    let complaints = run.provider.complaints.lock().expect("not poisoned").clone();
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
}

#[test]
fn whatever_happens_a_world_settles_as_desired_and_every_event_keeps_the_invariants() {
    let first = from_environment("CONVERGE_SEED", 1);
    for seed in first..first + from_environment("CONVERGE_WORLDS", WORLDS) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Config {
            cases: 1,
            failure_persistence: None,
            max_shrink_iters: SHRINKS_MAX,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let tried = runner.run(&actions(), |actions| {
            on_a_paused_clock(live_through(seed, &actions)).map_err(TestCaseError::fail)
        });
        if let Err(failure) = tried {
            panic!("CONVERGE_SEED={seed} CONVERGE_WORLDS=1: {failure}");
        }
    }
}
