//! Servers that die, with and without their PostgreSQL, at chosen points.
//!
//! A point is chosen by what the log holds, or by a lock that stops the server there, never by a moment. What a dead server
//! had claimed and not delivered comes back when its lease ends, so these tests wait for seconds without working.

use crate::{audit, children_of, converge};
use replay_tests::bom::Bom;
use replay_tests::history::History;
use replay_tests::site::{Knobs, Site};
use sqlx::PgPool;

const KNOBS: Knobs = Knobs { latency_ms: 100, fault_rate: 0.0, parallel: 8 };

/// What goes down with the server.
#[derive(Clone, Copy, PartialEq)]
enum Postgres {
    Survives,
    StopsWithIt,
    IsKilledToo,
}

async fn site(postgres: Postgres) -> Site {
    match postgres {
        Postgres::Survives => Site::on_shared_postgres().await,
        Postgres::StopsWithIt | Postgres::IsKilledToo => Site::on_embedded_postgres(),
    }
}

async fn killed_half_way(postgres: Postgres) {
    let site = site(postgres).await;
    let server = site.serve().await;
    let _worker = site.work(KNOBS);
    site.apply_kinds().await;
    let bom = Bom::new("region", 6, 5);
    site.api.apply(&[bom.document()]).await;

    let store = site.store().await;
    let half = bom.children().len() / 2;
    let at_half = async |history: &History| {
        let busy = history.live().values().any(|resource| resource.claim.is_some());
        (history.count("Worked") >= half && busy).then_some(())
    };
    let (_, before) = site.until("half way", &store, at_half).await;
    drop(store);
    match postgres {
        Postgres::IsKilledToo => site.cut_power(server).await,
        Postgres::Survives | Postgres::StopsWithIt => server.kill(),
    }
    let _server = site.serve().await;
    site.until_ready("classicbom", "region").await;
    let after = audit(&site).await;
    assert_eq!(after.events[..before.events.len()], before.events, "what was committed stays");
    assert_eq!(children_of(&after, "region"), bom.children());
    site.ledger.assert_once_each("create", bom.children());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_half_way_goes_on_when_postgres_survives() {
    killed_half_way(Postgres::Survives).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_half_way_goes_on_when_postgres_stops_with_it() {
    killed_half_way(Postgres::StopsWithIt).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_half_way_goes_on_when_postgres_is_killed_too() {
    killed_half_way(Postgres::IsKilledToo).await;
}

/// Takes a name that the pass will want and does not commit: the append that needs it waits for us.
struct Barrier {
    pool: PgPool,
    connection: sqlx::Transaction<'static, sqlx::Postgres>,
}

impl Barrier {
    async fn at(site: &Site, kind: &str, name: &str) -> Self {
        let pool = site.pool().await;
        let mut connection = pool.begin().await.expect("the database answers");
        let take = "INSERT INTO converge.names (kind, name, id) VALUES ($1, $2, gen_random_uuid())";
        sqlx::query(take)
            .bind(kind)
            .bind(name)
            .execute(&mut *connection)
            .await
            .expect("the database answers");
        Self { pool, connection }
    }

    /// Waits until a session of the server's waits for us.
    async fn reached(&self, site: &Site) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let store = site.store().await;
        let probe = async |_: &History| {
            let waiting: i64 =
                sqlx::query_scalar(waiting).fetch_one(&self.pool).await.expect("the database answers");
            (waiting > 0).then_some(())
        };
        site.until("an append at the barrier", &store, probe).await;
    }

    async fn lift(self) {
        self.connection.rollback().await.expect("the database answers");
    }
}

async fn killed_in_the_pass(postgres: Postgres) {
    let site = site(postgres).await;
    let server = site.serve().await;
    let worker = site.work(KNOBS);
    site.apply_kinds().await;
    // More than one chunk of children, so that some are written and some are not.
    let bom = Bom::new("region", 25, 8);
    let barrier = Barrier::at(&site, "route", "region/fd-24/team-7").await;
    site.api.apply(&[bom.document()]).await;
    barrier.reached(&site).await;
    let store = site.store().await;
    let before = History::read(&store).await;
    assert_eq!((before.count("CompositionAccepted"), before.count("Composed")), (1, 0));
    assert_eq!(before.count("Claimed"), 1, "nothing under a composer is claimed before its pass is done");
    drop(store);
    match postgres {
        Postgres::IsKilledToo => {
            site.cut_power(server).await;
            drop(barrier);
        }
        Postgres::Survives | Postgres::StopsWithIt => {
            server.kill();
            barrier.lift().await;
        }
    }
    drop(worker);
    let _server = site.serve().await;
    let _worker = site.work(Knobs { parallel: 32, ..Knobs::default() });
    site.until_ready("classicbom", "region").await;
    let after = audit(&site).await;
    assert_eq!(children_of(&after, "region"), bom.children());
    assert_eq!(after.count("Created"), bom.children().len() + 1, "no child was made twice");
    site.ledger.assert_once_each("create", bom.children());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_in_a_composition_pass_finishes_it_when_postgres_survives() {
    killed_in_the_pass(Postgres::Survives).await;
}

/// The staged output is gone then, and the pass is closed and made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_in_a_composition_pass_composes_again_when_postgres_is_killed_too() {
    killed_in_the_pass(Postgres::IsKilledToo).await;
}

async fn killed_while_deleting(postgres: Postgres, kill_points: &[usize]) {
    let site = site(postgres).await;
    let mut server = site.serve().await;
    let _worker = site.work(KNOBS);
    site.apply_kinds().await;
    let bom = Bom::new("region", 4, 4);
    converge(&site, &bom).await;
    site.api.delete("classicbom", "region").await;
    for deleted in kill_points {
        let store = site.store().await;
        let reached = async |history: &History| (history.count("Deleted") >= *deleted).then_some(());
        site.until("a kill point", &store, reached).await;
        drop(store);
        match postgres {
            Postgres::IsKilledToo => site.cut_power(server).await,
            Postgres::Survives | Postgres::StopsWithIt => server.kill(),
        }
        server = site.serve().await;
    }
    site.until_gone("classicbom", "region").await;
    // That each went after all that leaned on it is judged there, event by event.
    let after = audit(&site).await;
    assert!(after.live().is_empty(), "{:?}", after.live().keys());
    assert_eq!(after.count("Deleted"), bom.children().len() + 1);
    site.ledger.assert_once_each("delete", bom.children());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_survives_kills_of_the_server_at_any_point_when_postgres_survives() {
    killed_while_deleting(Postgres::Survives, &[0, 10, 30, 55]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_survives_kills_of_the_server_at_any_point_when_postgres_is_killed_too() {
    killed_while_deleting(Postgres::IsKilledToo, &[0, 25]).await;
}
