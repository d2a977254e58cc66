//! What the rows of a list ask for is loaded together.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use support::World;

/// Log lines, kept.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a query loads, each load as its log line says it, with the answer.
async fn loads(world: &World, query: &str) -> (Value, Vec<String>) {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // One thread runs this test, the server and the loaders' tasks, so the thread's subscriber hears all.
    let heard = tracing::subscriber::set_default(subscriber);
    let answer = world.data(query, json!({})).await;
    drop(heard);
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let loads = log.lines().filter_map(|line| line.split("loading ").nth(1)).map(str::to_owned).collect();
    (answer, loads)
}

#[tokio::test]
async fn a_list_with_owners_children_and_events_loads_each_of_them_once_for_all_rows() {
    let mut world = World::new().await;
    world.story = support::story::a_varied_story();
    world.sync().await;
    let query = "{ resources { nodes { owner { name } children { nodes { name } } events(first: 1) { position } } } }";
    let (list, loads) = loads(&world, query).await;
    assert_eq!(list["resources"]["nodes"].as_array().unwrap().len(), 16);
    for what in ["resources", "children", "events"] {
        let of_it: Vec<_> = loads.iter().filter(|load| load.starts_with(what)).collect();
        assert_eq!(of_it.len(), 1, "{what}: {loads:?}");
    }
    // Twelve owned accounts, the team and its leaf ask for two different owners.
    let loaded = |what: &str| loads.iter().any(|load| load == what);
    assert!(loaded("resources keys=2"), "{loads:?}");
    assert!(loaded("children keys=16") && loaded("events keys=16"), "{loads:?}");
}

#[tokio::test]
async fn where_values_came_from_is_loaded_once_for_a_whole_graph_and_not_unless_asked_for() {
    let mut world = World::new().await;
    let zone = world.story.create("zone", "z", None);
    let account = world.story.create("account", "a", Some(zone));
    for n in 0..5 {
        let vpc = world.story.create("vpc", &format!("v{n}"), Some(zone));
        support::edges::flow(&mut world.story, vpc, account);
    }
    world.sync().await;
    let graph = |field: &str| {
        format!(
            "{{ graph(kind: \"zone\", name: \"z\") {{ edges {{ to {{ values {{ value {field} }} }} }} }} }}"
        )
    };
    let (_, loaded) = loads(&world, &graph("")).await;
    assert_eq!(loaded, [""; 0]);
    let (answer, loaded) = loads(&world, &graph("position")).await;
    assert_eq!(loaded, ["provenance keys=5"], "{answer}");
}
