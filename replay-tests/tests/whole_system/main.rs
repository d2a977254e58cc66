//! The whole system as its users meet it: real servers, real workers, real PostgreSQL, and real deaths of each.

mod happy_path;
mod other_readers;
mod servers_die;
mod side_by_side;
mod workers_die;

use replay_tests::bom::Bom;
use replay_tests::history::History;
use replay_tests::site::Site;
use replay_tests::{invariants, replay};

/// Applies the bill and waits for its root.
async fn converge(site: &Site, bom: &Bom) {
    site.api.apply(&[bom.document()]).await;
    site.until_ready("classicbom", &bom.name).await;
}

/// What holds of any quiet site, whatever happened to it; answers its whole log.
async fn audit(site: &Site) -> History {
    let store = site.store().await;
    let pool = site.pool().await;
    // The API shows a state as soon as it is committed; a last wake-up may still be on its way.
    let history = quiet(site, &store).await;
    invariants::check(&history.events);
    let replayed = replay::assert_equal(&store, &pool).await;
    assert_eq!(replayed.end(), history.end(), "a quiet system appends nothing");
    history
}

/// Waits until nothing is due, running or owed.
async fn quiet(site: &Site, store: &converge_event_store::PgStore) -> History {
    let probe = async |history: &History| {
        let still = history.live().values().all(|resource| {
            resource.claim.is_none()
                && resource.pass.is_none()
                && resource.due().is_none()
                && resource.deletion.is_none()
                && !resource.propagation_owed
        });
        still.then_some(())
    };
    site.until("quiet", store, probe).await.1
}

/// `(kind, name)` of every live resource below the root.
fn children_of(history: &History, root: &str) -> std::collections::BTreeSet<(String, String)> {
    let live = history.live();
    let root = live[&("classicbom".to_owned(), root.to_owned())].id().id;
    live.iter().filter(|(_, state)| state.id().owner() == Some(root)).map(|(name, _)| name.clone()).collect()
}
