//! `converge events`.

use crate::fake::{Fake, Step};
use crate::things::event;
use expect_test::expect;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

/// The past up to position 3, in pages of two.
fn past(variables: &Value) -> Value {
    let after: u64 = variables["after"].as_str().unwrap().parse().unwrap();
    let nodes: Vec<Value> = (after + 1..=3).take(2).map(|position| event(position, "Created")).collect();
    let end = (after + nodes.len() as u64).to_string();
    json!({"events": {"nodes": nodes, "endPosition": end, "hasMore": after + 2 < 3}})
}

#[tokio::test]
async fn the_past_is_told_in_order_page_by_page() {
    let fake = Fake::answering(|_, variables| Ok(past(variables))).await;
    let ended = fake.run(&["events", "vpc/a"]).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    expect![[r"
        1 2026-01-02T03:04:05.678Z vpc/a Created version ? (ann)
        2 2026-01-02T03:04:05.678Z vpc/a Created version ? (ann)
        3 2026-01-02T03:04:05.678Z vpc/a Created version ? (ann)
    "]]
    .assert_eq(&ended.stdout.replace("     ", ""));
    assert!(fake.asked()[0].1.contains(r#""filter":{"kind":"vpc","name":"a"}"#));
    let ended = fake.run(&["events", "--from", "2", "-o", "json"]).await;
    expect![[r#"
        {"position":3,"at":"2026-01-02T03:04:05.678Z","aggregate_type":"resource","aggregate_id":"id-a","sequence":1,"kind":"vpc","name":"a","event_type":"Created","payload":{"Created":{"reason":"tested"}},"metadata":{"actor":"ann"}}
    "#]]
    .assert_eq(&ended.stdout);
}

#[tokio::test]
async fn following_goes_on_across_broken_connections_with_no_gap_and_no_duplicate() {
    let fake = Fake::start(
        |_, variables| Ok(past(variables)),
        |_, variables| {
            let item = |position| Step::Item("events", event(position, "Worked"));
            match variables["from"].as_str().unwrap() {
                "3" => vec![item(4), item(5), Step::Break],
                // A server that counts `from` in, and one that is too slow to go on.
                "5" => vec![item(5), item(6), Step::Error("UNAVAILABLE", "too slow")],
                "6" => vec![item(7)],
                other => panic!("nobody may follow from {other}"),
            }
        },
    )
    .await;
    let mut child = fake.spawn(&["events", "--follow", "-o", "json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut positions = Vec::new();
    while positions.len() < 7 {
        let line: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        positions.push(line["position"].as_u64().unwrap());
    }
    assert_eq!(positions, [1, 2, 3, 4, 5, 6, 7]);
    child.kill().await.unwrap();
}

#[tokio::test]
async fn following_ends_when_the_server_refuses_it() {
    let fake = Fake::start(
        |_, variables| Ok(past(variables)),
        |_, _| vec![Step::Error("BAD_REQUEST", "`from` is beyond the end of the log")],
    )
    .await;
    let ended = fake.run(&["events", "--follow"]).await;
    assert_eq!(ended.code, 1);
    assert_eq!(ended.stderr, "error: `from` is beyond the end of the log\n");
}
