//! The process dies at every single append of a tree's making and of its teardown; the next one over the same
//! store comes to the same end.

use super::desired::Tree;
use super::mortal::Moment;
use super::run::Run;
use super::{on_a_paused_clock, proof, settled};
use converge_domain::AnyEvent;
use converge_domain::resource::ResourceEvent;
use converge_event_store::LogConfig;
use std::collections::BTreeMap;

/// Appends that a making or a teardown of the tree may take.
const APPENDS_MAX: u64 = 500;

/// A root over leaves and a team, with edges in both, in a chain of four: d needs the team, which needs c, which needs a.
fn tree() -> Tree {
    let leaves = |places: &[usize]| places.iter().map(|place| (*place, (1, 0))).collect::<BTreeMap<_, _>>();
    let team = Tree { leaves: leaves(&[0, 2]), edges: vec![(2, 0, true)], ..Tree::default() };
    Tree {
        leaves: leaves(&[0, 1, 2, 5]),
        team: Some(Box::new(team)),
        edges: vec![(2, 0, true), (4, 2, true), (5, 4, true), (5, 1, false)],
        ..Tree::default()
    }
}

/// Every command in an append of its own, and no faults but the one that is set.
async fn calm() -> Run {
    let mut run = Run::new(0).await;
    run.log = LogConfig { batch_groups_max: 1, ..LogConfig::default() };
    run.provider.calm_down();
    run.start(0).await;
    run
}

/// Runs `story` once for each append in it, with the process dying at that one, until it outlives the story.
fn at_every_append(story: impl AsyncFn(&mut Run, u64, Moment) -> bool) -> u64 {
    let mut deaths = 0;
    for moment in [Moment::Before, Moment::After] {
        for appends in 1.. {
            assert!(appends < APPENDS_MAX, "the story has no end");
            let died = on_a_paused_clock(async {
                let mut run = calm().await;
                let died = story(&mut run, appends, moment).await;
                proof::check(&run.events().await)
                    .unwrap_or_else(|broken| panic!("{moment:?} {appends}: {broken}"));
                died
            });
            if !died {
                break;
            }
            deaths += 1;
        }
    }
    deaths
}

fn first_life_is_over(run: &Run, births: u64) -> bool {
    run.births() > births
}

#[test]
fn a_making_killed_at_any_append_ends_the_same() {
    let deaths = at_every_append(async |run, appends, moment| {
        let births = run.births();
        run.process(0).await.life.end_at(appends, moment);
        run.declare(0, tree()).await.expect("it is accepted");
        run.settle().await.expect("it gets quiet");
        settled::as_desired(run).await.unwrap_or_else(|wrong| panic!("{moment:?} {appends}: {wrong}"));
        first_life_is_over(run, births)
    });
    assert!(deaths > 40, "only {deaths} deaths");
}

#[test]
fn a_teardown_killed_at_any_append_ends_the_same() {
    let deaths = at_every_append(async |run, appends, moment| {
        run.declare(0, tree()).await.expect("it is accepted");
        run.settle().await.expect("it gets quiet");
        let births = run.births();
        let head = run.head().await;
        run.process(0).await.life.end_at(appends, moment);
        run.delete_root(0).await.expect("it is accepted");
        run.settle().await.expect("it gets quiet");
        settled::as_desired(run).await.unwrap_or_else(|wrong| panic!("{moment:?} {appends}: {wrong}"));
        // That each goes after what depends on it, and strips a finalizer once, is proved of the whole stream.
        let (mut stripped, mut ends) = (0, Vec::new());
        for stored in run.events().await.iter().filter(|stored| stored.position > head) {
            match &stored.event {
                AnyEvent::Resource(ResourceEvent::FinalizerStripped { .. }) => stripped += 1,
                AnyEvent::Resource(ResourceEvent::Deleted(deleted)) => ends.push(deleted.owner.is_none()),
                _ => {}
            }
        }
        assert_eq!((stripped, ends.len()), (8, 8), "{moment:?} {appends}");
        assert_eq!(ends.last(), Some(&true), "{moment:?} {appends}: the root is the last");
        first_life_is_over(run, births)
    });
    assert!(deaths > 40, "only {deaths} deaths");
}
