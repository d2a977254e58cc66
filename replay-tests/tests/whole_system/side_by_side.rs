//! Several server processes on one database.

use crate::{audit, children_of};
use replay_tests::api::Api;
use replay_tests::bom::Bom;
use replay_tests::history::History;
use replay_tests::site::{Knobs, Site, free_addresses};

#[tokio::test(flavor = "multi_thread")]
async fn control_and_broker_converge_a_tree_from_two_processes() {
    let site = Site::on_shared_postgres().await;
    let control = site.serve_as("control", &site.addresses);
    let _control = site.ready(control, &site.api).await;
    let brokers = free_addresses();
    let _broker = site.serve_as("broker", &brokers);
    site.apply_kinds().await;
    let small = Bom::new("small", 1, 2);
    site.api.apply(&[small.document()]).await;
    let why = |wanted: &'static str| {
        move |state: Option<&(String, String)>| state.is_some_and(|(_, why)| why.starts_with(wanted))
    };
    let nobody = why("Waits for a worker: none that is connected serves classicbom/v1");
    site.until_state("classicbom", "small", "waiting for a worker", nobody).await;

    // The worker is at the broker's process; control, which is asked, knows of it all the same.
    let slow = site.work_at(&brokers.broker, Knobs { latency_ms: 500, parallel: 1, ..Knobs::default() });
    let store = site.store().await;
    let queued = async |history: &History| {
        for (kind, name) in history.live().into_keys() {
            let (_, why) = site.api.state(&kind, &name).await?;
            if why == "Queued for a free worker." {
                return Some(());
            }
        }
        None
    };
    site.until("queued for the one worker", &store, queued).await;
    site.until_ready("classicbom", "small").await;
    slow.stop();

    let _worker = site.work_at(&brokers.broker, Knobs::default());
    let mut bom = Bom::new("region", 6, 5);
    crate::converge(&site, &bom).await;
    bom.domains[0].push("newcomers".to_owned());
    bom.domains[5].remove(0);
    crate::converge(&site, &bom).await;
    let history = audit(&site).await;
    assert_eq!(children_of(&history, "region"), bom.children());
    site.api.delete("classicbom", "region").await;
    site.until_gone("classicbom", "region").await;
    let left = audit(&site).await.live().into_keys().filter(|(_, name)| name.starts_with("region"));
    assert_eq!(left.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_whole_servers_side_by_side_converge_trees_with_a_worker_at_each() {
    let site = Site::on_shared_postgres().await;
    let _first = site.serve().await;
    let second = free_addresses();
    let other = Api::new(&second.http);
    let server = site.serve_as("all", &second);
    let _second = site.ready(server, &other).await;
    let _here = site.work(Knobs { latency_ms: 20, parallel: 8, ..Knobs::default() });
    let _there = site.work_at(&second.broker, Knobs { latency_ms: 20, parallel: 8, ..Knobs::default() });
    // Kinds through one server, and their resources at once through the other.
    site.apply_kinds().await;
    let boms = [Bom::new("east", 6, 5), Bom::new("west", 6, 5)];
    other.apply(&[boms[0].document()]).await;
    site.api.apply(&[boms[1].document()]).await;
    for bom in &boms {
        site.until_ready("classicbom", &bom.name).await;
    }
    let history = audit(&site).await;
    for bom in &boms {
        assert_eq!(children_of(&history, &bom.name), bom.children());
    }
    site.ledger.assert_once_each("create", boms.iter().flat_map(Bom::children));
    for (api, bom) in [(&site.api, &boms[0]), (&other, &boms[1])] {
        api.delete("classicbom", &bom.name).await;
    }
    for bom in &boms {
        site.until_gone("classicbom", &bom.name).await;
    }
    assert!(audit(&site).await.live().is_empty());
    site.ledger.assert_once_each("delete", boms.iter().flat_map(Bom::children));
}
