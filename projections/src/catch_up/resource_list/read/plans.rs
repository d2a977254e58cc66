//! Every list query keeps to its index: proven on a table that is big enough for the planner to care.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

use super::filter::{Filter, Key};
use super::page::query;
use converge_domain::ResourceId;
use converge_domain::resource::Phase;
use embedded_postgres::testkit::TestDatabase;
use sqlx::postgres::PgArguments;
use sqlx::{Arguments, PgPool};
use uuid::Uuid;

const OWNER: ResourceId = ResourceId(Uuid::from_u128(1));

/// 30,000 resources in 30 kinds and 60 trees, one of them with 2,000 children of one owner.
const FILL: &str = "
    INSERT INTO projections.resource_list
    SELECT gen_random_uuid(), 'kind' || n % 30, 1, 'name' || n, jsonb_build_object('n', (n % 1000)::text, 'all', 'yes'),
           (ARRAY['Ready', 'Ready', 'Ready', 'Reconciling', 'Failed'])[n % 5 + 1],
           CASE WHEN n % 15 = 0 THEN '00000000-0000-0000-0000-000000000001'::uuid ELSE gen_random_uuid() END,
           ('00000000-0000-0000-0000-' || lpad((n % 60)::text, 12, '0'))::uuid, 1, '{}',
           'kind' || n % 30 || 'name' || n, now(), n, '{}'
    FROM generate_series(1, 30000) AS n";

async fn table() -> (TestDatabase, PgPool) {
    let database = TestDatabase::from_template("converge", |url| async move {
        let pool = PgPool::connect(&url).await.unwrap();
        let migrated = converge_event_store::migrate(&pool).await;
        pool.close().await;
        migrated
    })
    .await;
    let pool = database.pool().await;
    sqlx::query(FILL).execute(&pool).await.unwrap();
    sqlx::query("VACUUM ANALYZE projections.resource_list").execute(&pool).await.unwrap();
    (database, pool)
}

async fn explain(pool: &PgPool, sql: &str, arguments: PgArguments) -> String {
    let lines: Vec<String> = sqlx::query_scalar_with(&format!("EXPLAIN (COSTS OFF) {sql}"), arguments)
        .persistent(false)
        .fetch_all(pool)
        .await
        .unwrap();
    lines.join("\n")
}

async fn plan(pool: &PgPool, filter: &Filter) -> String {
    // In the middle of the list, where a plan that walks from the start would cost most.
    let after = Key { kind: "kind15".into(), name: "name5".into(), id: OWNER };
    let (sql, arguments) = query(filter, Some(&after), 101).unwrap();
    explain(pool, sql, arguments).await
}

#[track_caller]
fn assert_plan(plan: &str, index: &str, sorts: bool) {
    assert!(plan.contains(index), "expected {index}:\n{plan}");
    assert!(!plan.contains("Seq Scan"), "sequential scan:\n{plan}");
    assert_eq!(plan.contains("Sort"), sorts, "sort:\n{plan}");
}

#[tokio::test]
async fn every_list_query_walks_its_index_and_the_common_ones_sort_nothing() {
    let (_database, pool) = table().await;
    let root = Some(ResourceId(Uuid::from_u128(7)));
    let all = Filter::default();
    assert_plan(&plan(&pool, &all).await, "resource_list_by_name", false);
    let kind = Filter { kind: Some("kind20".into()), ..all.clone() };
    assert_plan(&plan(&pool, &kind).await, "resource_list_by_name", false);
    let prefix = Filter { kind: Some("kind20".into()), name_prefix: Some("name12".into()), ..all.clone() };
    assert_plan(&plan(&pool, &prefix).await, "resource_list_by_name", false);
    let owner = Filter { owner: Some(OWNER), ..all.clone() };
    assert_plan(&plan(&pool, &owner).await, "resource_list_by_parent", false);
    let in_tree = Filter { root, ..all.clone() };
    assert_plan(&plan(&pool, &in_tree).await, "resource_list_by_root", false);
    // Phases merge a bounded page each; labels have no order to keep.
    let phases = Filter { phases: vec![Phase::Failed, Phase::Reconciling], ..all.clone() };
    assert_plan(&plan(&pool, &phases).await, "resource_list_by_phase", true);
    let label = Filter { labels: [("n".to_owned(), "77".to_owned())].into(), ..all };
    assert_plan(&plan(&pool, &label).await, "resource_list_by_label", true);
}

#[tokio::test]
async fn the_merge_of_phases_sorts_pages_and_never_the_table() {
    let (_database, pool) = table().await;
    let phases = Filter { phases: vec![Phase::Ready, Phase::Reconciling], ..Filter::default() };
    let plan = plan(&pool, &phases).await;
    let below_limit = plan.rsplit("Limit").next().unwrap();
    assert!(!below_limit.contains("Sort"), "a page of one phase comes sorted from its index:\n{plan}");
}

#[tokio::test]
async fn trees_children_and_counts_keep_to_their_indexes() {
    let (_database, pool) = table().await;
    let mut tree = PgArguments::default();
    let mut add = || {
        tree.add(Uuid::from_u128(7))?;
        tree.add("kind2")?;
        tree.add(1)?;
        tree.add(Uuid::nil())?;
        tree.add("\u{10FFFF}")?;
        tree.add(None::<Uuid>)?;
        tree.add(101_i64)
    };
    add().unwrap();
    assert_plan(&explain(&pool, include_str!("../tree.sql"), tree).await, "resource_list_by_path", false);

    let mut children = PgArguments::default();
    let mut add = || {
        children.add(vec![OWNER.0, Uuid::from_u128(2)])?;
        children.add("")?;
        children.add("")?;
        children.add(Uuid::nil())?;
        children.add(101_i64)
    };
    add().unwrap();
    let plan = explain(&pool, include_str!("../children.sql"), children).await;
    assert_plan(&plan, "resource_list_by_parent", false);

    let mut tally = PgArguments::default();
    tally.add(Uuid::from_u128(7)).unwrap();
    let plan = explain(&pool, include_str!("../tally_root.sql"), tally).await;
    // It sorts the few groups, not the rows.
    assert!(plan.contains("resource_list_tally") && !plan.contains("Seq Scan"), "{plan}");

    let mut find = PgArguments::default();
    find.add("kind20").unwrap();
    find.add("name20").unwrap();
    let plan = explain(&pool, include_str!("../find.sql"), find).await;
    assert!(plan.contains("resource_list_by_name") && !plan.contains("Seq Scan"), "{plan}");
}
