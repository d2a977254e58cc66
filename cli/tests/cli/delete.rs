//! `converge delete`.

use crate::fake::{Fake, refusal};
use crate::things::resource;
use expect_test::expect;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a server says that lets everything go that is named, and two of whatever is selected.
fn going(variables: &Value) -> Value {
    let selected = json!([{"kind": "vpc", "name": "a"}, {"kind": "vpc", "name": "b"}]);
    let names = variables["targets"].get("names").unwrap_or(&selected).as_array().unwrap();
    let going = names.iter().map(|name| {
        json!({
            "id": format!("id-{}", name["name"].as_str().unwrap()), "kind": name["kind"], "name": name["name"],
            "already": name["name"] == "b", "notes": ["its composer will make it anew"],
        })
    });
    json!({"deleteMany": {"position": "5", "going": going.collect::<Vec<_>>()}})
}

fn asked(fake: &Fake, operation: &str) -> Vec<Value> {
    let bodies = fake.asked().into_iter().filter(|(asked, _)| asked == operation);
    bodies.map(|(_, body)| serde_json::from_str::<Value>(&body).unwrap()["variables"].take()).collect()
}

#[tokio::test]
async fn many_go_in_one_request_and_each_is_told() {
    let fake = Fake::answering(|_, variables| Ok(going(variables))).await;
    let ended = fake.run(&["delete", "vpc/a", "vpc/b", "--cascade"]).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    expect![[r"
        vpc/a deleting
        vpc/b already deleting
    "]]
    .assert_eq(&ended.stdout);
    expect![[r"
        note: vpc/a: its composer will make it anew
        note: vpc/b: its composer will make it anew
    "]]
    .assert_eq(&ended.stderr);
    let names = json!([{"kind": "vpc", "name": "a"}, {"kind": "vpc", "name": "b"}]);
    assert_eq!(asked(&fake, "DeleteMany"), [json!({"targets": {"names": names}, "cascade": true})]);
}

#[tokio::test]
async fn a_refusal_is_of_all_and_tells_its_code() {
    let fake = Fake::answering(|_, _| Err(refusal("CONFLICT", "vpc/b is protected"))).await;
    let ended = fake.run(&["delete", "vpc/a", "vpc/b", "--wait"]).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (4, "", "error: vpc/b is protected\n")
    );
}

#[tokio::test]
async fn what_a_selector_selects_is_the_servers_to_say_and_is_printed() {
    let fake = Fake::answering(|_, variables| Ok(going(variables))).await;
    let ended = fake.run(&["delete", "-l", "team=x,env=", "--kind", "vpc"]).await;
    assert_eq!(ended.stdout, "vpc/a deleting\nvpc/b already deleting\n", "{}", ended.stderr);
    let selector = json!({"labels": {"team": "x", "env": ""}, "kind": "vpc"});
    assert_eq!(asked(&fake, "DeleteMany"), [json!({"targets": {"selector": selector}, "cascade": false})]);

    let nothing = json!({"deleteMany": {"position": "5", "going": []}});
    let fake = Fake::answering(move |_, _| Ok(nothing.clone())).await;
    let ended = fake.run(&["delete", "-l", "team=nobody", "--wait"]).await;
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", "nothing is selected\n"));
}

#[tokio::test]
async fn documents_say_what_is_deleted_and_kinds_in_them_stay() {
    let fake = Fake::answering(|_, variables| Ok(going(variables))).await;
    let documents = "{type: kind, kind: vpc, kind_version: 1}\n---\n{type: resource, kind: vpc, name: a}";
    let ended = fake.run_with_input(&["delete", "-f", "-"], documents).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "vpc/a deleting\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("a kind is no resource, and left alone"), "{}", ended.stderr);
}

#[tokio::test]
async fn more_than_one_request_takes_is_split_and_said() {
    let fake = Fake::answering(|_, variables| Ok(going(variables))).await;
    let names: Vec<String> = (0..1_001).map(|n| format!("vpc/v{n}")).collect();
    let words: Vec<&str> = ["delete"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let ended = fake.run(&words).await;
    assert_eq!((ended.code, ended.stdout.lines().count()), (0, 1_001), "{}", ended.stderr);
    let said = "1001 resources exceed one request; they go in 2 requests, each of them all or nothing";
    assert_eq!(ended.stderr.lines().next(), Some(said));
    assert_eq!(asked(&fake, "DeleteMany").len(), 2);
}

#[tokio::test]
async fn a_kind_version_goes_after_the_resources_named_with_it() {
    let fake = Fake::answering(|operation, variables| {
        Ok(if operation == "DeleteKind" { json!({"deleteKind": "9"}) } else { going(variables) })
    })
    .await;
    let ended = fake.run(&["delete", "kind/vpc/v1", "vpc/a"]).await;
    assert_eq!(ended.stdout, "vpc/a deleting\nkind/vpc/v1 deleted\n", "{}", ended.stderr);
    let operations: Vec<String> = fake.asked().into_iter().map(|(operation, _)| operation).collect();
    assert_eq!(operations, ["DeleteMany", "DeleteKind"]);
}

#[tokio::test]
async fn waiting_ends_when_it_is_gone() {
    let looks = AtomicUsize::new(0);
    let fake = Fake::answering(move |operation, variables| {
        Ok(match operation {
            "DeleteMany" => going(variables),
            "StateById" if looks.fetch_add(1, Ordering::SeqCst) < 2 => {
                json!({"resource": resource("vpc", "a", "Deleting")})
            }
            _ => json!({"resource": null}),
        })
    })
    .await;
    let ended = fake.run(&["delete", "vpc/a", "--wait"]).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "vpc/a deleting\nvpc/a deleted\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(asked(&fake, "StateById")[0], json!({"id": "id-a", "minPosition": "5"}));
}

#[tokio::test]
async fn waiting_for_what_does_not_go_ends_with_3() {
    let fake = Fake::answering(|operation, variables| {
        Ok(match operation {
            "DeleteMany" => going(variables),
            _ => json!({"resource": resource("vpc", "a", "Deleting")}),
        })
    })
    .await;
    let ended = fake.run(&["delete", "vpc/a", "--wait", "--timeout", "300ms"]).await;
    assert_eq!(ended.code, 3);
    expect![[r"
        note: vpc/a: its composer will make it anew
        error: time is up; vpc/a is Deleting: waits for account/a to be Ready
    "]]
    .assert_eq(&ended.stderr);
}
