//! Watches, and the protocol they come by.

#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has nothing to decide")]

mod support;

use serde_json::{Value, json};
use std::time::Duration;
use support::World;
use support::websocket::Client;

const EVENTS: &str = "subscription($filter: EventFilter, $from: Position) {
    events(filter: $filter, from: $from) { position kind name eventType } }";
const CHANGES: &str = "subscription($filter: ResourceFilter, $from: Position) {
    resourceChanged(filter: $filter, from: $from) {
        position eventType kind name phase leftFilter resource { name labels phase } } }";

#[tokio::test]
async fn a_watch_replays_from_its_position_then_goes_live_without_gap_or_duplicate() {
    let mut world = World::new().await;
    world.story = support::story::a_varied_story();
    let past = world.append().await.0;
    let mut client = Client::ready(world.address).await;
    client.subscribe("1", EVENTS, json!({"from": "10"})).await;
    let mut seen = Vec::new();
    let mut collect = async |client: &mut Client, until: u64| {
        while seen.last() != Some(&until) {
            let position = client.next("1").await["events"]["position"].as_str().unwrap().parse().unwrap();
            seen.push(position);
        }
        seen.clone()
    };
    collect(&mut client, past - 3).await;
    // Appended while the replay still runs.
    for n in 0..20 {
        world.story.create("vpc", &format!("new{n}"), None);
        world.append().await;
    }
    let seen = collect(&mut client, past + 20).await;
    assert_eq!(seen, (11..=past + 20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_watch_without_a_position_starts_now_and_one_beyond_the_end_is_refused() {
    let mut world = World::new().await;
    world.story.create("vpc", "old", None);
    world.append().await;
    let mut client = Client::ready(world.address).await;
    client.subscribe("beyond", EVENTS, json!({"from": "2"})).await;
    let refused = client.hear().await;
    assert!(refused.to_string().contains("BAD_REQUEST"), "{refused}");
    client.subscribe("now", EVENTS, json!({})).await;
    // A query on the same connection is answered after the watch was set up: what follows is "later".
    client.subscribe("q", "{ __typename }", json!({})).await;
    let mut answered = false;
    while !answered {
        let message = client.hear().await;
        answered = message["id"] == "q" && message["type"] == "complete";
    }
    world.story.create("vpc", "new", None);
    world.append().await;
    let event = loop {
        let message = client.hear().await;
        if message["id"] == "now" {
            break message["payload"]["data"]["events"].clone();
        }
    };
    assert_eq!(event, json!({"position": "2", "kind": "vpc", "name": "new", "eventType": "Created"}));
}

#[tokio::test]
async fn events_are_filtered_by_kind_and_name_though_they_carry_only_ids() {
    let mut world = World::new().await;
    world.story = support::story::a_varied_story();
    world.append().await;
    let mut client = Client::ready(world.address).await;
    client.subscribe("1", EVENTS, json!({"from": "0", "filter": {"kind": "account", "name": "a03"}})).await;
    let types: Vec<String> = {
        let mut types = Vec::new();
        for _ in 0..8 {
            let event = client.next("1").await["events"].take();
            assert_eq!((&event["kind"], &event["name"]), (&json!("account"), &json!("a03")));
            types.push(event["eventType"].as_str().unwrap().to_owned());
        }
        types
    };
    let expected =
        ["Created", "Claimed", "Worked", "DeletionRequested", "Deleted", "Created", "Claimed", "Worked"];
    assert_eq!(types, expected, "the first bearer of the name, then the second");
}

#[tokio::test]
async fn a_watcher_is_told_once_when_a_resource_leaves_its_filter() {
    let mut world = World::new().await;
    let id = world.story.create_labelled("vpc", "a", None, &[("env", "prod")]);
    world.story.create_labelled("vpc", "other", None, &[("env", "test")]);
    world.story.claim(id);
    world.story.label(id, &[("env", "test")]);
    world.story.work(id);
    world.story.label(id, &[("env", "prod")]);
    world.story.request_deletion(id);
    world.story.delete(id);
    world.append().await;
    let filter = json!({"labels": {"env": "prod"}});
    let expected = [
        ("1", "Created", false),
        ("3", "Claimed", false),
        ("4", "Configured", true),
        ("6", "Configured", false),
        ("7", "DeletionRequested", false),
        ("8", "Deleted", true),
    ];
    // From any position on the answers are the same: what was before is read from the log.
    for from in 0..8_u64 {
        let mut client = Client::ready(world.address).await;
        client.subscribe("1", CHANGES, json!({"from": from.to_string(), "filter": filter})).await;
        for (position, event, left) in expected.iter().filter(|(p, ..)| p.parse::<u64>().unwrap() > from) {
            let change = client.next("1").await["resourceChanged"].take();
            assert_eq!(
                (&change["position"], &change["eventType"], &change["leftFilter"]),
                (&json!(position), &json!(event), &json!(left)),
                "from {from}"
            );
            assert_eq!(change["resource"].is_null(), *event == "Deleted");
        }
    }
}

#[tokio::test]
async fn a_change_shows_the_resource_as_of_its_event() {
    let mut world = World::new().await;
    let zone = world.story.create("zone", "z", None);
    let id = world.story.create("vpc", "a", Some(zone));
    world.story.claim(id);
    world.story.work(id);
    world.story.request_deletion(id);
    world.append().await;
    let mut client = Client::ready(world.address).await;
    client.subscribe("1", CHANGES, json!({"from": "0", "filter": {"owner": zone.to_string()}})).await;
    let mut phases = Vec::new();
    for _ in 0..4 {
        let change = client.next("1").await["resourceChanged"].take();
        assert_eq!(change["phase"], change["resource"]["phase"]);
        phases.push(change["phase"].as_str().unwrap().to_owned());
    }
    assert_eq!(phases, ["Reconciling", "Reconciling", "Ready", "Deleting"]);
}

#[tokio::test]
async fn the_protocol_closes_with_its_numbers() {
    let world = World::new().await;
    let subscribe = json!({"type": "subscribe", "id": "1", "payload": {"query": EVENTS}});
    let init = json!({"type": "connection_init"});
    let cases: &[(&str, &[Value], u16)] = &[
        ("an operation before the init", std::slice::from_ref(&subscribe), 4401),
        ("a second init", &[init.clone(), init.clone()], 4429),
        ("an id in use", &[init.clone(), subscribe.clone(), subscribe.clone()], 4409),
        ("an unknown type", &[init.clone(), json!({"type": "start"})], 4400),
        ("no type", &[json!({})], 4400),
        ("no id", &[init.clone(), json!({"type": "subscribe", "payload": {"query": EVENTS}})], 4400),
        ("no payload", &[init.clone(), json!({"type": "subscribe", "id": "1"})], 4400),
        ("no query", &[init.clone(), json!({"type": "subscribe", "id": "1", "payload": {}})], 4400),
        ("a payload that is none", &[json!({"type": "connection_init", "payload": 1})], 4400),
    ];
    for (what, messages, code) in cases {
        let mut client = Client::open(world.address).await;
        for message in *messages {
            client.say(message.clone()).await;
        }
        assert_eq!(client.close_code().await, *code, "{what}");
    }
    let mut client = Client::open(world.address).await;
    client.say_text("{").await;
    assert_eq!(client.close_code().await, 4400, "no JSON");
    let mut client = Client::open_as(world.address, None).await;
    assert_eq!(client.close_code().await, 4406, "no subprotocol");
}

#[tokio::test]
async fn a_client_that_never_introduces_itself_is_closed_and_pinged_ones_stay() {
    let world = World::with(|state| {
        state.limits.ws_init_timeout = Duration::from_millis(100);
        state.limits.ws_ping_every = Duration::from_millis(50);
    })
    .await;
    let mut silent = Client::open(world.address).await;
    let mut ready = Client::ready(world.address).await;
    assert_eq!(silent.close_code().await, 4408);
    // The library answers pings while it reads; the operation is still there well after the init timeout.
    ready.say(json!({"type": "ping"})).await;
    assert_eq!(ready.hear().await, json!({"type": "pong"}));
}

#[tokio::test]
async fn operations_end_when_either_side_says_so() {
    let mut world = World::new().await;
    let mut client = Client::ready(world.address).await;
    client.subscribe("1", EVENTS, json!({"from": "0"})).await;
    client.say(json!({"type": "complete", "id": "1"})).await;
    // The pong says that the complete was heard, before anything happens that the first one could show.
    client.say(json!({"type": "ping"})).await;
    assert_eq!(client.hear().await, json!({"type": "pong"}));
    // The id is free again, so the first operation is gone.
    client.subscribe("1", EVENTS, json!({"from": "0"})).await;
    world.story.create("vpc", "a", None);
    world.append().await;
    assert_eq!(client.next("1").await["events"]["position"], "1");
    client.subscribe("2", "{ nothing }", json!({})).await;
    let error = client.hear().await;
    assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("2")), "{error}");
    client.subscribe("3", "{ __typename }", json!({})).await;
    assert_eq!(client.next("3").await["__typename"], "Query");
    assert_eq!(client.hear().await, json!({"type": "complete", "id": "3"}));
    world.shutdown.cancel();
    assert_eq!(client.close_code().await, 1001);
}

#[tokio::test]
async fn documents_are_checked_as_raw_text_on_this_transport_too() {
    let world = World::new().await;
    let mut client = Client::ready(world.address).await;
    let query = "mutation($d: [JSON!]!) { apply(documents: $d) { position } }";
    client
        .say_text(&format!(
            r#"{{"type": "subscribe", "id": "1", "payload": {{"query": "{query}", "variables": {{"d": [{{"n": 1e400}}]}}}}}}"#
        ))
        .await;
    let error = client.hear().await;
    assert_eq!(error["payload"][0]["extensions"]["violations"][0]["pointer"], "/n", "{error}");
}

#[tokio::test]
async fn operations_beyond_the_bound_are_refused_and_the_others_go_on() {
    let mut world = World::with(|state| state.limits.ws_operations_max = 1).await;
    let mut client = Client::ready(world.address).await;
    client.subscribe("1", EVENTS, json!({"from": "0"})).await;
    client.subscribe("2", EVENTS, json!({"from": "0"})).await;
    let refused = client.hear().await;
    assert_eq!((&refused["type"], &refused["id"]), (&json!("error"), &json!("2")));
    world.story.create("vpc", "a", None);
    world.append().await;
    client.next("1").await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_holds_nobody_up_and_misses_nothing() {
    let mut world = World::new().await;
    let mut slow = Client::ready(world.address).await;
    slow.subscribe("1", EVENTS, json!({"from": "0"})).await;
    let mut fast = Client::ready(world.address).await;
    fast.subscribe("1", EVENTS, json!({"from": "0"})).await;
    for n in 0..500 {
        world.story.create("vpc", &format!("v{n:03}"), None);
    }
    world.append().await;
    for client in [&mut fast, &mut slow] {
        for position in 1..=500 {
            let event = client.next("1").await["events"].take();
            assert_eq!(event["position"], json!(position.to_string()));
        }
    }
}
