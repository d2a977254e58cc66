//! Every list query keeps to its index: proven on a table that is big enough for the planner to care.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

use super::filter::{Filter, Key};
use super::page::{Access, access, query};
use super::{ResourceList, Scan};
use converge_domain::ResourceId;
use converge_domain::resource::Phase;
use embedded_postgres::testkit::TestDatabase;
use sqlx::postgres::PgArguments;
use sqlx::{Arguments, PgPool};
use uuid::Uuid;

const OWNER: ResourceId = ResourceId(Uuid::from_u128(1));

/// 30,000 resources in 30 kinds and 60 trees, one of them with 2,000 children of one owner.
const FILL: &str = "
    WITH new AS MATERIALIZED (
        SELECT n, gen_random_uuid() AS id, 'kind' || n % 30 AS kind, 'name' || n AS name,
               CASE WHEN n % 15 = 0 THEN '00000000-0000-0000-0000-000000000001'::uuid ELSE gen_random_uuid() END AS parent,
               ('00000000-0000-0000-0000-' || lpad((n % 60)::text, 12, '0'))::uuid AS root,
               jsonb_build_object('n', (n % 1000)::text, 'all', 'yes') AS labels,
               (ARRAY['Ready', 'Ready', 'Ready', 'Reconciling', 'Failed'])[n % 5 + 1] AS phase
        FROM generate_series(1, 30000) AS n
    ), listed AS (
        INSERT INTO projections.resource_list
        SELECT id, kind, name, parent, root, 1, '{}', kind || name, labels, n FROM new
    )
    INSERT INTO projections.resource_phase SELECT id, phase, kind, name, root, '{}' FROM new";

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
    sqlx::query("VACUUM ANALYZE projections.resource_list, projections.resource_phase")
        .execute(&pool)
        .await
        .unwrap();
    (database, pool)
}

async fn explain(pool: &PgPool, sql: &str, arguments: PgArguments) -> String {
    explain_scan(pool, Scan::Ordered, sql, arguments).await
}

async fn explain_scan(pool: &PgPool, scan: Scan, sql: &str, arguments: PgArguments) -> String {
    let mut tx = pool.begin().await.unwrap();
    sqlx::query(include_str!("../snapshot.sql"))
        .bind(ResourceList::NAME)
        .bind(scan.bitmaps())
        .fetch_one(&mut *tx)
        .await
        .unwrap();
    let lines: Vec<String> = sqlx::query_scalar_with(&format!("EXPLAIN (COSTS OFF) {sql}"), arguments)
        .persistent(false)
        .fetch_all(&mut *tx)
        .await
        .unwrap();
    lines.join("\n")
}

async fn plan(pool: &PgPool, filter: &Filter) -> String {
    plan_by(pool, access(filter), filter).await
}

async fn plan_by(pool: &PgPool, access: Access, filter: &Filter) -> String {
    // In the middle of the list, where a plan that walks from the start would cost most.
    let after = Key { kind: "kind15".into(), name: "name5".into(), id: OWNER };
    let (sql, arguments) = query(access, filter, Some(&after), 101).unwrap();
    explain_scan(pool, access.scan(), sql, arguments).await
}

#[track_caller]
fn assert_plan(plan: &str, index: &str, sorts: bool) {
    assert!(plan.contains(index), "expected {index}:\n{plan}");
    assert!(!plan.contains("Seq Scan"), "sequential scan:\n{plan}");
    assert_eq!(plan.contains("Sort"), sorts, "sort:\n{plan}");
}

/// The rows that the index gives are merged with the root's as they come.
#[track_caller]
fn assert_merged(plan: &str, index: &str) {
    let (above, _) = plan.split_once(index).unwrap_or_else(|| panic!("expected {index}:\n{plan}"));
    let parent = above.rsplit("->").nth(1).unwrap_or_default().trim_start();
    assert!(above.contains("Merge Append") && parent.starts_with("Limit"), "sort:\n{plan}");
    assert!(!plan.contains("Seq Scan"), "sequential scan:\n{plan}");
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
    // The root is added by hand to what its index gives in order.
    let in_tree = plan(&pool, &in_tree).await;
    assert_merged(&in_tree, "resource_list_by_root");
    // Phases merge a bounded page each; labels have no order to keep.
    let phases = Filter { phases: vec![Phase::Failed, Phase::Reconciling], ..all.clone() };
    assert_plan(&plan(&pool, &phases).await, "resource_phase_by_phase", true);
    let label = Filter { labels: [("n".to_owned(), "77".to_owned())].into(), ..all };
    assert_plan(&plan(&pool, &label).await, "resource_list_by_label", true);
}

#[tokio::test]
async fn a_kind_and_a_prefix_are_one_range_of_an_index_with_both_ends() {
    let (_database, pool) = table().await;
    let prefix = Filter { name_prefix: Some("name12".into()), ..Filter::default() };
    let kind = Filter { kind: Some("kind15".into()), ..prefix.clone() };
    let owner = Filter { owner: Some(OWNER), ..kind.clone() };
    let root = Filter { root: Some(ResourceId(Uuid::from_u128(7))), ..kind.clone() };
    let phase = Filter { phases: vec![Phase::Failed], ..kind.clone() };
    for (filter, index) in [
        (prefix, "resource_list_by_name"),
        (kind, "resource_list_by_name"),
        (owner, "resource_list_by_parent"),
        (root, "resource_list_by_root"),
        (phase, "resource_phase_by_phase"),
    ] {
        let plan = plan(&pool, &filter).await;
        let (_, below) = plan.split_once(index).unwrap_or_else(|| panic!("expected {index}:\n{plan}"));
        let condition = below.lines().find(|line| line.contains("Index Cond")).unwrap_or_default();
        for part in ["kind = ", "name >= ", "name < "] {
            assert!(condition.contains(part), "expected {part} among {condition}:\n{plan}");
        }
    }
}

#[tokio::test]
async fn a_phase_in_a_tree_is_found_along_either_index_and_never_by_reading_all() {
    let (_database, pool) = table().await;
    let failed = Filter { owner: Some(OWNER), phases: vec![Phase::Failed], ..Filter::default() };
    for (access, index) in
        [(Access::Owner, "resource_list_by_parent"), (Access::Phase, "resource_phase_by_phase")]
    {
        let plan = plan_by(&pool, access, &failed).await;
        assert!(plan.contains(index) && !plan.contains("Seq Scan") && !plan.contains("Hash"), "{plan}");
    }
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
    let tree = explain(&pool, include_str!("../tree.sql"), tree).await;
    assert_merged(&tree, "resource_list_by_path");

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
    // It sums what is kept by difference, and looks at no row but the root's.
    assert!(!plan.contains("resource_list") && plan.contains("resource_phase_pkey"), "{plan}");

    let mut find = PgArguments::default();
    find.add("kind20").unwrap();
    find.add("name20").unwrap();
    let plan = explain(&pool, include_str!("../find.sql"), find).await;
    assert!(plan.contains("resource_list_by_name") && !plan.contains("Seq Scan"), "{plan}");
}
