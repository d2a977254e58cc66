//! Replay equality: whatever the database derives from the log must be what a fold of the log gives.
//!
//! The rows are read as the database shows them to anyone, not through the store, so that a mistake in reading them
//! cannot hide one in writing them.

use crate::history::History;
use converge_domain::{Address, AggregateId, AnyState};
use converge_event_store::codes::{mark_code, phase_code, standing_code};
use converge_event_store::{HeadRow, InlineProjector, InlineRows, Store};
use converge_projections::inline::StateProjector;
use sqlx::PgPool;
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// The rows of one narrow table, each as one text: equal sets print as a readable difference.
type Rows = BTreeSet<String>;

const TABLES: [&str; 8] = ["head", "names", "edge", "child", "queue", "timer", "claim", "kind_policy"];

/// Compares heads and narrow tables with a fold of the whole log. The system must be quiet; the log's end is
/// read before and after, so that one that is not cannot pass or fail by chance.
///
/// # Panics
/// At the first difference.
pub async fn assert_equal(store: &dyn Store, pool: &PgPool) -> History {
    let history = History::read(store).await;
    let states = history.fold();
    let derived = Derived::of(&states);
    let stored = stored(pool).await;
    heads(store, &derived.heads).await;
    assert_eq!(store.log_head().await.unwrap().position, history.end(), "the system is not quiet");
    for (table, rows) in &derived.tables {
        assert_eq!(&stored[table], rows, "table {table}, stored against derived");
    }
    history
}

/// What the inline projector makes of a fold.
struct Derived {
    heads: HashMap<AggregateId, HeadRow>,
    tables: HashMap<&'static str, Rows>,
}

impl Derived {
    fn of(states: &HashMap<AggregateId, AnyState>) -> Self {
        let mut derived = Self { heads: HashMap::new(), tables: HashMap::new() };
        for table in TABLES {
            derived.tables.insert(table, Rows::new());
        }
        for (id, state) in states {
            let address = Address { aggregate_type: state.aggregate_type(), id: *id };
            let (head, rows) =
                StateProjector.project(address, &AnyState::empty(state.aggregate_type()), state);
            if !rows.head_removed {
                derived.add(id.0, head, rows);
            }
        }
        derived
    }

    fn add(&mut self, id: Uuid, head: HeadRow, rows: InlineRows) {
        let phase = head.phase.map(phase_code);
        let (standing, subtree) = (head.standing.map(standing_code), head.subtree.map(standing_code));
        let pass = head.pass_id.map(|pass| pass.0);
        self.row(
            "head",
            [
                text(id),
                text(&head.kind),
                text(head.kind_version),
                text(&head.name),
                option(head.parent.map(|p| p.0)),
                option(phase),
                option(standing),
                option(subtree),
                option(pass),
                text(head.outward),
            ],
        );
        self.heads.insert(head.id, head);
        if let Some(name) = rows.name_taken {
            self.row("names", [text(name.kind), text(name.name), text(id)]);
        }
        for upstream in rows.edges_added {
            self.row("edge", [text(upstream.0), text(id)]);
        }
        if let Some(Some(child)) = rows.child {
            self.row("child", [text(mark_code(child.mark)), text(child.parent.0), text(id)]);
        }
        if let Some(Some(queue)) = rows.queue {
            let kind = queue.kind;
            self.row(
                "queue",
                [
                    text(kind.kind),
                    text(kind.kind_version),
                    text(queue.priority),
                    text(queue.due_at.0),
                    text(id),
                ],
            );
        }
        if let Some(Some(timer)) = rows.timer {
            self.row("timer", [text(timer.due_at.0), text(id)]);
        }
        if let Some(Some(claim)) = rows.claim {
            let kind = claim.kind;
            self.row("claim", [text(kind.kind), text(kind.kind_version), text(claim.session.0), text(id)]);
        }
        if let Some(policy) = rows.policy {
            let kind = policy.kind;
            self.row("kind_policy", [text(kind.kind), text(kind.kind_version), text(policy.max_inflight)]);
        }
    }

    fn row<const N: usize>(&mut self, table: &'static str, columns: [String; N]) {
        self.tables.entry(table).or_default().insert(columns.join(" | "));
    }
}

fn text(value: impl ToString) -> String {
    value.to_string()
}

fn option(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Every narrow table, in one snapshot.
async fn stored(pool: &PgPool) -> HashMap<&'static str, Rows> {
    let mut tables: HashMap<&'static str, Rows> = HashMap::new();
    let rows: Vec<(String, String)> =
        sqlx::query_as(include_str!("tables.sql")).fetch_all(pool).await.expect("the tables can be read");
    for (table, row) in rows {
        let table = TABLES.into_iter().find(|known| *known == table).expect("a table that is compared");
        tables.entry(table).or_default().insert(row);
    }
    for table in TABLES {
        tables.entry(table).or_default();
    }
    tables
}

/// The cached state of every head is the fold of its stream.
async fn heads(store: &dyn Store, derived: &HashMap<AggregateId, HeadRow>) {
    let ids: Vec<AggregateId> = derived.keys().copied().collect();
    for ids in ids.chunks(500) {
        let heads = store.heads(ids).await.unwrap();
        assert_eq!(heads.len(), ids.len(), "every live aggregate has a head");
        for head in heads {
            assert_eq!(head.state, derived[&head.id].state, "the state of {} against its stream", head.id);
        }
    }
}
