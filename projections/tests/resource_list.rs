//! Rules of the resource list.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use converge_domain::ResourceId;
use converge_domain::resource::Phase;
use converge_event_store::StoredEvent;
use converge_projections::catch_up::resource_list::{Filter, Key, Reader};
use converge_projections::catch_up::{Checkpoint, ResourceList, apply_batch};
use sqlx::PgPool;
use support::database::database;
use support::story::{Story, a_varied_story};

/// Every column of every table, as text.
const DUMP: &str = "
    SELECT 'list ' || row_to_json(row)::text FROM projections.resource_list row
    UNION ALL SELECT 'phase ' || row_to_json(row)::text FROM projections.resource_phase row
    UNION ALL SELECT 'gone ' || row_to_json(row)::text FROM projections.resource_gone row
    UNION ALL SELECT 'count ' || row_to_json(row)::text FROM projections.phase_count row
    UNION ALL SELECT 'tree ' || row_to_json(row)::text FROM projections.tree_phase_count row
    UNION ALL SELECT 'position ' || position FROM projections.checkpoint
    ORDER BY 1";

async fn reader(pool: &PgPool, story: &Story) -> Reader {
    Reader::new(pool.clone(), support::heads::heads(story).await)
}

async fn project(pool: &PgPool, log: &[StoredEvent]) {
    let mut connection = pool.acquire().await.unwrap().detach();
    let checkpoint = Checkpoint::take(&mut connection, &ResourceList).await.unwrap();
    let new = &log[usize::try_from(checkpoint.position().0).unwrap()..];
    apply_batch(&mut connection, &ResourceList, checkpoint, new).await.unwrap();
}

fn names(rows: &[converge_projections::catch_up::resource_list::ListRow]) -> Vec<String> {
    rows.iter().map(|row| row.state.id().reference().to_string()).collect()
}

#[tokio::test]
async fn the_same_log_gives_the_same_rows_however_it_is_cut_and_wherever_it_crashes() {
    let story = a_varied_story();
    let rows = support::four_ways::rows(&ResourceList, &story.events, DUMP).await;
    let of = |what: &str| rows.iter().filter(|row| row.starts_with(what)).count();
    // zone, 12 accounts less one gone, the nested team, its leaf, the second a03, the lone vpc
    assert_eq!(of("list "), 1 + 11 + 1 + 1 + 1 + 1);
    assert_eq!(of("phase "), of("list "));
    assert_eq!(of("gone "), 2, "what is gone keeps its identity, however brief it was");
    assert_eq!(of(&format!("position {}", story.events.len())), 1);
}

#[tokio::test]
async fn counts_kept_by_difference_equal_counts_taken_from_the_rows() {
    let (_database, pool) = database().await;
    let story = a_varied_story();
    project(&pool, &story.events).await;
    let reader = reader(&pool, &story).await;
    let roots: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT id FROM projections.resource_list WHERE parent IS NULL")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(roots.len(), 2);
    for root in roots.into_iter().map(Some).chain([None]) {
        let counted: Vec<(String, String, i64)> = sqlx::query_as(
            "SELECT kind, phase, count(*)
             FROM projections.resource_phase
             WHERE $1 IS NULL OR root = $1 OR id = $1
             GROUP BY kind, phase ORDER BY kind, phase",
        )
        .bind(root)
        .fetch_all(&pool)
        .await
        .unwrap();
        let kept = reader.tally(root.map(ResourceId)).await.unwrap().value;
        let kept: Vec<_> = kept
            .into_iter()
            .map(|t| (t.kind, t.phase.as_str().to_owned(), i64::try_from(t.count).unwrap()))
            .collect();
        assert_eq!(kept, counted, "{root:?}");
    }
}

#[tokio::test]
async fn stored_phases_are_those_of_the_states_in_full() {
    let (_database, pool) = database().await;
    let story = a_varied_story();
    project(&pool, &story.events).await;
    let stored: Vec<(String, String)> = sqlx::query_as(
        "SELECT kind || '/' || name, phase FROM projections.resource_phase ORDER BY kind, name, id",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let full = reader(&pool, &story).await.page(&Filter::default(), None, 1000).await.unwrap().value.rows;
    let full: Vec<_> = full
        .iter()
        .map(|row| (row.state.id().reference().to_string(), row.state.phase().to_string()))
        .collect();
    assert_eq!(stored, full);
}

#[tokio::test]
async fn what_heads_say_later_agrees_with_what_was_asked_for() {
    let (_database, pool) = database().await;
    let mut story = Story::default();
    let ids: Vec<_> = (0..10).map(|n| story.create("vpc", &format!("v{n}"), None)).collect();
    project(&pool, &story.events).await;
    // The list stops here; the heads go on.
    let seen = story.events.len() as u64;
    for id in &ids[..6] {
        story.claim(*id);
        story.work(*id);
    }
    story.request_deletion(ids[9]);
    story.delete(ids[9]);
    let reader = reader(&pool, &story).await;
    let of = |phase| Filter { phases: vec![phase], ..Filter::default() };
    let page = reader.page(&of(Phase::Reconciling), None, 2).await.unwrap();
    // Those that left the phase are left out, and the page goes on behind them.
    assert_eq!((page.position.0, names(&page.value.rows)), (seen, vec!["vpc/v6".into(), "vpc/v7".into()]));
    let rest = reader.page(&of(Phase::Reconciling), page.value.next.as_ref(), 2).await.unwrap().value;
    assert_eq!((names(&rest.rows), rest.next), (vec!["vpc/v8".to_owned()], None));
    let all = reader.page(&Filter::default(), None, 10).await.unwrap().value;
    assert_eq!((all.rows.len(), all.next), (9, None), "the one that is gone is not shown");
    // However far the list lags behind, a page reads a few times its size and says where it ended.
    let (mut pages, mut after, mut found) = (0, None, Vec::new());
    loop {
        let page = reader.page(&of(Phase::Reconciling), after.as_ref(), 1).await.unwrap().value;
        found.extend(names(&page.rows));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["vpc/v6", "vpc/v7", "vpc/v8"]);
    assert!(pages > 3, "some page was empty and had a next one");
}

#[tokio::test]
async fn every_filter_shows_what_it_says_and_nothing_else() {
    let (_database, pool) = database().await;
    let story = a_varied_story();
    project(&pool, &story.events).await;
    let reader = reader(&pool, &story).await;
    let all = reader.page(&Filter::default(), None, 1000).await.unwrap().value.rows;
    let zone = all.iter().find(|row| row.state.id().kind == "zone").unwrap().state.id().id;
    let label = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    let filters = [
        Filter { kind: Some("account".into()), ..Filter::default() },
        Filter { kind: Some("account".into()), name_prefix: Some("a1".into()), ..Filter::default() },
        Filter { name_prefix: Some("d".into()), ..Filter::default() },
        Filter { name_prefix: Some("a".into()), ..Filter::default() },
        Filter { name_prefix: Some("a1".into()), owner: Some(zone), ..Filter::default() },
        Filter { name_prefix: Some("a1".into()), phases: vec![Phase::Ready], ..Filter::default() },
        Filter {
            kind: Some("account".into()),
            phases: vec![Phase::Ready],
            root: Some(zone),
            ..Filter::default()
        },
        Filter { phases: vec![Phase::Ready], ..Filter::default() },
        Filter { phases: vec![Phase::Deleting, Phase::Reconciling], ..Filter::default() },
        Filter { owner: Some(zone), ..Filter::default() },
        Filter { owner: Some(zone), phases: vec![Phase::Deleting], ..Filter::default() },
        Filter { root: Some(zone), ..Filter::default() },
        Filter { root: Some(zone), kind: Some("vpc".into()), ..Filter::default() },
        Filter { labels: label("env", "test"), ..Filter::default() },
        Filter { labels: label("env", "prod"), ..Filter::default() },
        Filter { labels: label("n", "5"), phases: vec![Phase::Ready], root: Some(zone), ..Filter::default() },
        Filter { kind: Some("nothing".into()), ..Filter::default() },
    ];
    for filter in filters {
        // The one definition of each filter in Rust, used by watches, is the oracle of its SQL.
        let expected: Vec<_> = all.iter().filter(|row| filter.admits(&row.state)).cloned().collect();
        let listed = reader.page(&filter, None, 1000).await.unwrap().value.rows;
        assert_eq!(names(&listed), names(&expected), "{filter:?}");
        let mut paged = Vec::new();
        let mut after: Option<Key> = None;
        loop {
            let page = reader.page(&filter, after.as_ref(), 2).await.unwrap().value;
            paged.extend(page.rows);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(names(&paged), names(&expected), "in pages of two: {filter:?}");
    }
}

#[tokio::test]
async fn rows_that_come_and_go_between_pages_neither_repeat_nor_hide_one_that_stays() {
    let (_database, pool) = database().await;
    let mut story = Story::default();
    let stay: Vec<String> = (0..20).map(|n| format!("m{:02}", n * 2)).collect();
    for name in &stay {
        story.create("vpc", name, None);
    }
    let leaving = story.create("vpc", "m01", None);
    project(&pool, &story.events).await;
    let (mut seen, mut after) = (Vec::new(), None::<Key>);
    for round in 0.. {
        let reader = reader(&pool, &story).await;
        let page = reader.page(&Filter::default(), after.as_ref(), 4).await.unwrap().value.rows;
        let Some(last) = page.last() else { break };
        after = Some(last.key());
        seen.extend(page.iter().map(|row| row.state.id().name.clone()));
        match round {
            0 => {
                // Before, at and behind the cursor; and the very row the cursor came from may go.
                story.create("vpc", "a-new-one-before", None);
                story.create("vpc", "m03", None);
                story.request_deletion(leaving);
                story.delete(leaving);
            }
            1 => drop(story.create("vpc", "m05-behind-the-cursor-or-not", None)),
            _ => {}
        }
        project(&pool, &story.events).await;
    }
    let seen_of_stay: Vec<_> = seen.iter().filter(|name| stay.contains(name)).cloned().collect();
    assert_eq!(seen_of_stay, stay, "each that stays, once, in order");
}

#[tokio::test]
async fn a_tree_comes_depth_first_in_pages_of_any_size() {
    let (_database, pool) = database().await;
    let mut story = Story::default();
    let root = story.create("zone", "z", None);
    let b = story.create("team", "b", Some(root));
    let a = story.create("team", "a", Some(root));
    story.create("vpc", "in-b", Some(b));
    let deep = story.create("team", "in-a", Some(a));
    story.create("vpc", "deepest", Some(deep));
    story.create("account", "first-by-kind", Some(root));
    story.create("zone", "other", None);
    project(&pool, &story.events).await;
    let reader = reader(&pool, &story).await;
    let expected = [
        (0, "zone/z"),
        (1, "account/first-by-kind"),
        (1, "team/a"),
        (2, "team/in-a"),
        (3, "vpc/deepest"),
        (1, "team/b"),
        (2, "vpc/in-b"),
    ];
    for size in 1..=8 {
        let (mut walked, mut after) = (Vec::new(), None);
        loop {
            let page = reader.tree("zone", "z", after.as_ref(), size).await.unwrap().value.unwrap().rows;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            walked.extend(page.iter().map(|n| (n.depth, n.row.state.id().reference().to_string())));
        }
        let walked: Vec<_> = walked.iter().map(|(depth, name)| (*depth, name.as_str())).collect();
        assert_eq!(walked, expected, "in pages of {size}");
    }
    let branch = reader.tree("team", "a", None, 10).await.unwrap().value.unwrap().rows;
    let branch: Vec<_> = branch.iter().map(|n| (n.depth, n.row.state.id().name.as_str())).collect();
    assert_eq!(branch, [(0, "a"), (1, "in-a"), (2, "deepest")]);
    assert_eq!(reader.tree("team", "none", None, 10).await.unwrap().value, None);
}

#[tokio::test]
async fn a_tree_deeper_than_an_index_entry_is_still_walked_once_and_owners_first() {
    let (_database, pool) = database().await;
    let mut story = Story::default();
    let mut owner = story.create("level", "000", None);
    let long = "n".repeat(120);
    for level in 1..60 {
        owner = story.create("level", &format!("{level:03}-{long}"), Some(owner));
    }
    project(&pool, &story.events).await;
    let reader = reader(&pool, &story).await;
    let (mut depths, mut after) = (Vec::new(), None);
    loop {
        let page = reader.tree("level", "000", after.as_ref(), 7).await.unwrap().value.unwrap().rows;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        depths.extend(page.iter().map(|node| node.depth));
    }
    assert_eq!(depths, (0..60).collect::<Vec<_>>());
}
