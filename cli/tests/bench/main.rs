//! Every scenario of `converge bench` at a small size: that it runs, finds its own result in the log, and says what it is
//! for. Never how fast it is: a shared machine proves nothing there. Timeouts are for runs that hang.

#![expect(clippy::unwrap_used, reason = "a test ends at its first surprise, its helpers included")]

mod run;

use run::{Report, bench, on_an_embedded_server};

#[tokio::test]
async fn the_floor_is_a_rate() {
    let report = bench(&["floor", "--n", "500", "--batch", "100"]).await;
    assert_eq!(report.count("n"), 500);
    report.positive(&["seconds", "cycles_per_second", "events_per_second", "bytes_per_event"]);
    report.describes_where_it_ran();
}

#[tokio::test]
async fn reconcile_counts_what_it_did() {
    let report = bench(&["reconcile", "--n", "300", "--batch", "50", "--probe-rate", "20"]).await;
    assert_eq!((report.count("n"), report.count("events")), (300, 900));
    report.positive(&["seconds", "reconciles_per_second", "ratio", "floor.cycles_per_second", "batches"]);
    report.says_what_it_cost();
    report.was_probed();
    report.describes_where_it_ran();
}

#[tokio::test]
async fn fanout_has_one_root_and_its_rollup_sees_all_children() {
    let report = bench(&["fanout", "--n", "150", "--probe-rate", "20"]).await;
    assert_eq!((report.count("n"), report.count("roots")), (150, 1));
    report.positive(&["seconds", "children_per_second", "ratio", "floor.cycles_per_second"]);
    // Created, claimed and worked is the least that each child takes.
    assert!(report.count("events") > 3 * 150);
    report.says_what_it_cost();
    report.was_probed();
}

#[tokio::test]
async fn forest_has_a_root_for_every_so_many_children() {
    let report = bench(&["forest", "--n", "130", "--children", "50", "--no-rollup", "--no-probe"]).await;
    assert_eq!((report.count("n"), report.count("roots")), (130, 3));
    assert!(report.at("probe").is_null());
    report.positive(&["seconds", "children_per_second", "ratio"]);
    report.says_what_it_cost();
}

#[tokio::test]
async fn churn_loses_nothing_and_doubles_nothing_though_its_worker_is_killed() {
    let report = bench(&["churn", "--n", "300", "--children", "150"]).await;
    assert_eq!((report.count("lost"), report.count("doubled")), (0, 0));
    for edit in ["edit", "edit_with_kill"] {
        let specs = report.count(&format!("{edit}.specs"));
        assert!((2..30).contains(&specs), "about 1 % of 300, and {specs}");
        report.positive(&[&format!("{edit}.seconds"), &format!("{edit}.specs_per_second")]);
    }
    assert!(report.count("edit_with_kill.kill.worked") > 0);
    assert!(report.at("edit.kill").is_null());
    assert_eq!(report.count("delete_all.resources"), 302);
    report.positive(&["delete_all.resources_per_second"]);
    assert!(report.at("resync_all").as_str().unwrap().contains("not measured"));
}

#[tokio::test]
async fn latency_orders_its_legs_and_runs_beside_bare_commits() {
    let report = bench(&["latency", "--n", "15"]).await;
    let total = report.number("apply_to_ready.p50_ms");
    for leg in ["apply_to_answer", "apply_to_worker", "worker_to_ready", "apply_to_ready", "three_commits"] {
        assert_eq!(report.count(&format!("{leg}.count")), 15, "{leg}");
        assert!(report.number(&format!("{leg}.p50_ms")) <= report.number(&format!("{leg}.p99_ms")), "{leg}");
    }
    assert!(total > 0.0 && report.number("apply_to_worker.p50_ms") <= total);
    report.says_what_it_cost();
}

#[tokio::test]
async fn idle_appends_nothing() {
    let report = bench(&["idle", "--n", "100", "--seconds", "2"]).await;
    assert_eq!((report.count("n"), report.count("events")), (100, 0));
    assert!(report.number("seconds") >= 2.0);
    for share in ["server_cpu_percent", "worker_cpu_percent"] {
        assert!(report.number(share) >= 0.0, "{share}");
    }
    assert!(report.number("statements_per_second") >= 0.0);
    assert!(report.count("memory.server.rss_kib") > 0);
}

#[tokio::test]
async fn watch_delivers_to_each_subscriber_what_the_log_holds_for_it() {
    let report = bench(&["watch", "--n", "100", "--children", "50", "--subscribers", "110"]).await;
    assert_eq!((report.count("subscribers"), report.count("connections")), (110, 3));
    assert!(report.count("heard.events") > 110);
    assert_eq!(report.count("heard.events"), report.count("heard.delivery.count"));
    report.positive(&["heard.delivery.p50_ms", "engine_slowdown", "ratio"]);
}

#[tokio::test]
async fn an_embedded_server_keeps_every_commit_and_counts_statements_if_it_can() {
    let report: Report = on_an_embedded_server(&["latency", "--n", "5"]).await;
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(report.at(&format!("postgres.{setting}")), "on", "{setting}");
    }
    match report.at("statements.source").as_str().unwrap() {
        "pg_stat_statements" => assert!(!report.at("statements.top").as_array().unwrap().is_empty()),
        other => assert_eq!(other, "pg_stat_database"),
    }
    if cfg!(target_os = "linux") {
        assert!(report.count("memory.postgres_pss_kib") > 0);
    }
}
