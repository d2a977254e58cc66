//! Workers that die, fail, or are not there.

use crate::{audit, children_of};
use replay_tests::bom::Bom;
use replay_tests::history::History;
use replay_tests::site::{Knobs, Site};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_half_way_and_restarted_repeats_no_effect() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    site.apply_kinds().await;
    let bom = Bom::new("region", 6, 5);
    let knobs = Knobs { latency_ms: 150, parallel: 8, ..Knobs::default() };
    let worker = site.work(knobs);
    site.api.apply(&[bom.document()]).await;

    let store = site.store().await;
    let half = bom.children().len() / 2;
    // Half is done, and some tasks are out.
    let at_half = async |history: &History| {
        let busy = history.live().values().any(|resource| resource.claim.is_some());
        (history.count("Worked") >= half && busy).then_some(())
    };
    site.until("half way", &store, at_half).await;
    worker.kill();
    let _worker = site.work(knobs);
    site.until_ready("classicbom", "region").await;
    let history = audit(&site).await;
    assert_eq!(children_of(&history, "region"), bom.children());
    site.ledger.assert_once_each("create", bom.children());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_fifth_faults_the_root_gets_ready_and_a_waiting_resource_says_why() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    site.apply_kinds().await;
    let bom = Bom::new("region", 6, 5);
    site.api.apply(&[bom.document()]).await;
    let nobody = |state: Option<&(String, String)>| {
        state.is_some_and(|(_, why)| {
            why.contains("Waits for a worker: none that is connected serves classicbom/v1")
        })
    };
    site.until_state("classicbom", "region", "waiting for a worker", nobody).await;
    let described = site.converge(&["describe", "classicbom/region"]);
    let described = String::from_utf8(described.stdout).expect("text");
    assert!(described.contains("none that is connected serves classicbom/v1"), "{described}");

    // Every call fails: whatever a retry holds back now says so, however slowly we look.
    let outage = site.work(Knobs { fault_rate: 1.0, ..Knobs::default() });
    let store = site.store().await;
    let failing = async |history: &History| {
        let live = history.live();
        live.into_iter().find(|(_, resource)| resource.attempts >= 2 && resource.retry_at.is_some())
    };
    let (((kind, name), _), _) = site.until("a second failed attempt", &store, failing).await;
    let retrying = |state: Option<&(String, String)>| {
        state.is_some_and(|(_, why)| {
            why.contains("Attempt ") && why.contains(" failed: ") && why.contains("; next at ")
        })
    };
    let state = site.until_state(&kind, &name, "waiting for its retry", retrying).await;
    let (phase, why) = state.expect("it exists");
    assert_eq!(phase, "Reconciling", "{why}");
    assert!(why.contains("the cloud"), "the provider's words: {why}");
    outage.stop();

    let _worker = site.work(Knobs { fault_rate: 0.2, ..Knobs::default() });
    site.until_ready("classicbom", "region").await;
    let history = audit(&site).await;
    assert!(history.count("AttemptFailed") > 0);
    // A call whose answer was lost had its effect: the retry finds it done.
    site.ledger.assert_once_each("create", bom.children());
}
