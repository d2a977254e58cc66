//! What the rows of a list ask for is loaded together.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use serde_json::json;
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

#[tokio::test]
async fn a_list_with_owners_children_and_events_loads_each_of_them_once_for_all_rows() {
    let mut world = World::new().await;
    world.story = support::story::a_varied_story();
    world.sync().await;
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // One thread runs this test, the server and the loaders' tasks, so the thread's subscriber hears all.
    let heard = tracing::subscriber::set_default(subscriber);
    let query = "{ resources { nodes { owner { name } children { nodes { name } } events(first: 1) { position } } } }";
    let list = world.data(query, json!({})).await;
    drop(heard);
    assert_eq!(list["resources"]["nodes"].as_array().unwrap().len(), 16);
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let loads: Vec<&str> = log.lines().filter_map(|line| line.split("loading ").nth(1)).collect();
    for what in ["resources", "children", "events"] {
        let of_it: Vec<_> = loads.iter().filter(|load| load.starts_with(what)).collect();
        assert_eq!(of_it.len(), 1, "{what}: {loads:?}");
    }
    // Twelve owned accounts, the team and its leaf ask for two different owners.
    assert!(loads.contains(&"resources keys=2"), "{loads:?}");
    assert!(loads.contains(&"children keys=16") && loads.contains(&"events keys=16"), "{loads:?}");
}
