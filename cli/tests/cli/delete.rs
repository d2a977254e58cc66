//! `converge delete`.

use crate::fake::{Fake, refusal};
use crate::things::resource;
use expect_test::expect;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn every_resource_is_tried_and_the_first_refusal_counts() {
    let fake = Fake::answering(|_, variables| match variables["name"].as_str().unwrap() {
        "owned" => Err(refusal("CONFLICT", "vpc/owned is owned by zone/root")),
        "none" => Err(refusal("NOT_FOUND", "vpc/none does not exist")),
        name => Ok(json!({"delete": {
            "position": "5", "id": format!("id-{name}"), "already": name == "b",
            "notes": ["its composer will make it anew"],
        }})),
    })
    .await;
    let ended = fake.run(&["delete", "vpc/a", "vpc/owned", "vpc/none", "vpc/b"]).await;
    assert_eq!(ended.code, 4);
    expect![[r"
        vpc/a deleting
        vpc/b already deleting
    "]]
    .assert_eq(&ended.stdout);
    expect![[r"
        note: vpc/a: its composer will make it anew
        error: vpc/none does not exist
        note: vpc/b: its composer will make it anew
        error: vpc/owned is owned by zone/root
    "]]
    .assert_eq(&ended.stderr);
}

#[tokio::test]
async fn waiting_ends_when_it_is_gone() {
    let looks = AtomicUsize::new(0);
    let fake = Fake::answering(move |operation, _| {
        Ok(match operation {
            "Delete" => json!({"delete": {"position": "5", "id": "id-a", "already": false, "notes": []}}),
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
}

#[tokio::test]
async fn waiting_for_what_does_not_go_ends_with_3() {
    let fake = Fake::answering(|operation, _| {
        Ok(match operation {
            "Delete" => json!({"delete": {"position": "5", "id": "id-a", "already": false, "notes": []}}),
            _ => json!({"resource": resource("vpc", "a", "Deleting")}),
        })
    })
    .await;
    let ended = fake.run(&["delete", "vpc/a", "--wait", "--timeout", "300ms"]).await;
    assert_eq!(ended.code, 3);
    expect![[r"
        error: time is up; vpc/a is Deleting: waits for account/a to be Ready
    "]]
    .assert_eq(&ended.stderr);
}
