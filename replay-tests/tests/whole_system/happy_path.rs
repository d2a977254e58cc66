//! Nothing dies: what an apply makes, what a second one does not, and what an edit touches.

use crate::{audit, children_of, converge};
use converge_event_store::Store;
use replay_tests::bom::Bom;
use replay_tests::history::History;
use replay_tests::site::{Knobs, Site, documents, kinds};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn subject(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_twice_changes_nothing_appends_nothing_and_dispatches_nothing() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    let _worker = site.work(Knobs::default());
    let bom = Bom::new("region", 6, 5);
    let documents: Vec<_> = kinds().into_iter().chain([bom.document()]).collect();
    let first = site.api.apply(&documents).await;
    assert!(first.verbs.iter().all(|(_, verb)| verb == "created"), "{first:?}");
    site.until_ready("classicbom", "region").await;
    let before = audit(&site).await;
    let tasks = site.api.tasks_dispatched().await;
    assert_eq!(children_of(&before, "region"), bom.children());

    for _ in 0..3 {
        let again = site.api.apply(&documents).await;
        assert!(again.verbs.iter().all(|(_, verb)| verb == "unchanged"), "{again:?}");
        assert_eq!(again.verbs.len(), documents.len());
    }
    // Anything that the applies had woken would have been written before this, on the same streams.
    let other = Bom::new("other", 1, 1);
    converge(&site, &other).await;
    let after = audit(&site).await;
    let theirs: BTreeSet<_> = other.children().into_iter().chain([subject("classicbom", "other")]).collect();
    let touched: BTreeSet<_> = after.stories_after(before.end()).into_keys().collect();
    assert_eq!(touched, theirs, "only what is new has events");
    // A task for each child, and composing and rolling up.
    assert_eq!(site.api.tasks_dispatched().await - tasks, theirs.len() as u64 + 1);
    site.ledger.assert_once_each("create", bom.children().into_iter().chain(other.children()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_team_added_and_one_removed_touch_nothing_but_their_own_and_the_root() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    let _worker = site.work(Knobs::default());
    site.apply_kinds().await;
    let mut bom = Bom::new("region", 6, 5);
    converge(&site, &bom).await;
    let before = audit(&site).await;

    bom.domains[1].remove(2);
    bom.domains[4].push("newcomers".to_owned());
    let applied = site.api.apply(&[bom.document()]).await;
    assert_eq!(applied.verbs, [("classicbom/region".to_owned(), "configured".to_owned())]);
    let store = site.store().await;
    let gone = |history: &History| history.count("Deleted") == 3;
    site.until("three gone", &store, async |history| gone(history).then_some(())).await;
    site.until_ready("classicbom", "region").await;
    let after = audit(&site).await;

    assert_eq!(children_of(&after, "region"), bom.children());
    let stories = after.stories_after(before.end());
    let team = |domain: &str, team: &str| {
        ["account", "vpc", "route"].map(|kind| subject(kind, &format!("region/{domain}/{team}")))
    };
    let (added, removed) = (team("fd-04", "newcomers"), team("fd-01", "team-2"));
    let touched: BTreeSet<_> = stories.keys().cloned().collect();
    let wanted: BTreeSet<_> =
        added.iter().chain(&removed).cloned().chain([subject("classicbom", "region")]).collect();
    assert_eq!(touched, wanted);
    for subject in &added {
        assert_eq!(stories[subject][0], "Created");
        assert!(stories[subject].contains(&"Worked"));
    }
    for subject in &removed {
        assert_eq!(stories[subject].last(), Some(&"Deleted"));
        assert!(stories[subject].contains(&"FinalizerStripped"));
    }
    site.ledger.assert_once_each("delete", removed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_returns_while_its_teardown_runs_is_made_anew() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    let _worker = site.work(Knobs { latency_ms: 60, parallel: 2, ..Knobs::default() });
    site.apply_kinds().await;
    let whole = Bom::new("region", 2, 3);
    converge(&site, &whole).await;
    let mut smaller = whole.clone();
    smaller.domains[0].clear();
    site.api.apply(&[smaller.document()]).await;
    let store = site.store().await;
    let going = async |history: &History| (history.count("Deleted") > 0).then_some(());
    site.until("the first is gone", &store, going).await;
    site.api.apply(&[whole.document()]).await;
    site.until_ready("classicbom", "region").await;
    let history = audit(&site).await;
    assert_eq!(children_of(&history, "region"), whole.children());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_deleted_by_name_takes_its_dependents_and_all_are_made_anew_once() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    let _worker = site.work(Knobs { latency_ms: 60, parallel: 2, ..Knobs::default() });
    site.apply_kinds().await;
    let bom = Bom::new("region", 2, 3);
    converge(&site, &bom).await;
    let before = audit(&site).await;
    site.api.delete("account", "region/fd-00/team-1").await;
    let store = site.store().await;
    let team = ["account", "vpc", "route"].map(|kind| subject(kind, "region/fd-00/team-1"));
    let anew = async |history: &History| {
        let stories = history.stories_after(before.end());
        let made =
            team.iter().all(|subject| stories.get(subject).is_some_and(|story| story.contains(&"Created")));
        made.then_some(())
    };
    site.until("made anew", &store, anew).await;
    site.until_ready("classicbom", "region").await;
    let after = audit(&site).await;
    assert_eq!(children_of(&after, "region"), bom.children());
    let stories = after.stories_after(before.end());
    for subject in &team {
        for once in ["DeletionRequested", "Deleted", "Created", "Worked"] {
            let count = stories[subject].iter().filter(|name| **name == once).count();
            assert_eq!(count, 1, "{once} of {subject:?}: {:?}", stories[subject]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_five_fixture_kinds_apply_unchanged_and_only_the_unresolvable_reference_warns() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    let fixtures = documents(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../domain/tests/fixtures"));
    assert_eq!(fixtures.len(), 5);
    let applied = site.api.apply(&fixtures).await;
    assert!(applied.verbs.iter().all(|(_, verb)| verb == "created"), "{applied:?}");
    let about_references: Vec<_> =
        applied.warnings.iter().filter(|warning| warning.contains("RolledUpTeam")).collect();
    assert_eq!(about_references.len(), 1, "{:?}", applied.warnings);
    // What is stored and not built yet is named; nothing else is said.
    for warning in applied.warnings.iter().filter(|warning| !warning.contains("RolledUpTeam")) {
        assert!(warning.contains(" yet"), "{warning}");
    }
    let again = site.api.apply(&fixtures).await;
    assert!(again.verbs.iter().all(|(_, verb)| verb == "unchanged"), "{again:?}");
    audit(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_follow_tells_one_resources_story_in_order() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    site.apply_kinds().await;
    let (follow, told) =
        site.follow_words(&["events", "route/region/fd-00/team-0", "--follow", "-o", "json"]);
    let _worker = site.work(Knobs::default());
    converge(&site, &Bom::new("region", 1, 1)).await;
    site.api.delete("classicbom", "region").await;
    site.until_gone("classicbom", "region").await;

    // It ends with the word that ends the stream, however long the printing takes.
    let followed = tokio::task::spawn_blocking(move || {
        let mut story = Vec::new();
        for line in told {
            let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            story.push(event["event_type"].as_str().expect("a word").to_owned());
            if event["event_type"] == "Deleted" {
                break;
            }
        }
        story
    });
    let told = followed.await.expect("it was read");
    follow.kill();
    let store = site.store().await;
    let history = History::read(&store).await;
    let stories: BTreeMap<_, _> = history.stories_after(converge_domain::Position(0));
    assert_eq!(told, stories[&subject("route", "region/fd-00/team-0")]);
    assert_eq!(told.first().map(String::as_str), Some("Created"));
    assert_eq!(store.log_head().await.unwrap().position, history.end());
    audit(&site).await;
}
