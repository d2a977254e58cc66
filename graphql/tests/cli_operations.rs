//! The operations that the command line sends are valid against the schema, so that neither can change alone.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::World;
use support::websocket::Client;

#[tokio::test]
async fn every_operation_of_the_command_line_is_executed_and_not_refused() {
    let world = World::new().await;
    let variables = json!({
        "kind": "vpc", "name": "a", "id": uuid::Uuid::nil().to_string(), "first": 1, "events": 1,
        "documents": [], "wide": true, "columns": true, "full": true, "from": "0",
        "targets": {"names": [{"kind": "vpc", "name": "a"}]}, "cascade": true, "reason": "r", "digest": "d",
        "kindVersion": 1,
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/src/client/operations");
    let mut executed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "graphql") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if text.lines().any(|line| line.starts_with("subscription")) {
            let mut client = Client::ready(world.address).await;
            client.subscribe("1", &text, variables.clone()).await;
            // An invalid one would be answered with an error before the pong.
            client.say(json!({"type": "complete", "id": "1"})).await;
            client.subscribe("2", "{ __typename }", json!({})).await;
            let mut message = Value::Null;
            while message["type"] != "complete" {
                message = client.hear().await;
                assert_ne!(message["type"], "error", "{}: {message}", path.display());
            }
        } else {
            let answer = world.ask(&text, variables.clone()).await;
            // A world that is empty answers with null and with empty lists; an error would be about the operation itself.
            assert!(answer["data"].is_object(), "{}: {answer}", path.display());
            assert!(answer.get("errors").is_none(), "{}: {answer}", path.display());
        }
        executed += 1;
    }
    assert!(executed > 10, "found {executed} operations");
}

#[tokio::test]
async fn a_full_page_of_everything_the_command_line_shows_stays_within_the_bounds() {
    let world = World::new().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/src/client/operations");
    let text = std::fs::read_to_string(folder.join("resources.graphql")).unwrap();
    let variables = json!({"first": 1000, "wide": true, "columns": true, "full": true});
    world.data(&text, variables).await;
}
