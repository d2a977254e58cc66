//! The log as somebody else's software reads it.

use crate::{audit, converge};
use converge_domain::AggregateId;
use converge_domain::resource::ResourceState;
use cqrs_es::persist::PersistedEventRepository;
use cqrs_es::{Aggregate, DomainEvent};
use postgres_es::PostgresEventRepository;
use replay_tests::bom::Bom;
use replay_tests::site::{Knobs, Site};

#[tokio::test(flavor = "multi_thread")]
async fn postgres_es_reads_the_log_and_folds_it_to_the_same_state() {
    let site = Site::on_shared_postgres().await;
    let _server = site.serve().await;
    let _worker = site.work(Knobs::default());
    site.apply_kinds().await;
    converge(&site, &Bom::new("region", 1, 2)).await;
    let history = audit(&site).await;
    let repository = PostgresEventRepository::new(site.pool().await)
        .with_tables("converge.events_es", "converge.no_snapshots");
    for ((kind, name), ours) in history.live() {
        let id = AggregateId::from(ours.id().id);
        let read = repository.get_events::<ResourceState>(&id.to_string()).await.expect("it reads the view");
        let mut theirs = ResourceState::default();
        for (at, serialized) in read.into_iter().enumerate() {
            assert_eq!(serialized.sequence, at + 1);
            let event: <ResourceState as Aggregate>::Event =
                serde_json::from_value(serialized.payload).expect("the payload is the event");
            assert_eq!(
                (event.event_type(), event.event_version()),
                (serialized.event_type, serialized.event_version)
            );
            theirs.apply(event);
        }
        assert_eq!(theirs, *ours, "{kind}/{name}");
    }
}
