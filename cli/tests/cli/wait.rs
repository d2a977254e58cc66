//! `converge wait`.

use crate::fake::{Fake, Step, refusal};
use crate::things::{change, resource};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A `vpc/a` that is Reconciling until the server tells of its last change, `event_type`; it then is
/// `Ready`, or gone if that was its end.
async fn changing(event_type: &'static str) -> Fake {
    let told = Arc::new(AtomicBool::new(false));
    let telling = Arc::clone(&told);
    Fake::start(
        move |operation, _| {
            Ok(match (operation, told.load(Ordering::SeqCst)) {
                ("Position", _) => json!({"events": {"position": "7"}}),
                ("StateById", true) if event_type == "Deleted" => json!({"resource": null}),
                (_, told) => {
                    let phase = if told { "Ready" } else { "Reconciling" };
                    json!({"resource": resource("vpc", "a", phase)})
                }
            })
        },
        move |_, _| {
            telling.store(true, Ordering::SeqCst);
            vec![Step::Item("resourceChanged", change(8, event_type, &resource("vpc", "a", "Ready")))]
        },
    )
    .await
}

#[tokio::test]
async fn a_phase_is_waited_for_from_the_position_before_the_first_look() {
    let fake = changing("Worked").await;
    let ended = fake.run(&["wait", "vpc/a", "--for", "phase=Ready"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "vpc/a is Ready\n"), "{}", ended.stderr);
    assert_eq!(fake.asked()[0].0, "Position");
    assert_eq!(fake.subscribed()[0]["from"], "7");
    assert_eq!(fake.subscribed()[0]["filter"], json!({"kind": "vpc", "namePrefix": "a"}));
}

#[tokio::test]
async fn the_end_is_waited_for() {
    let fake = changing("Deleted").await;
    let ended = fake.run(&["wait", "vpc/a", "--for", "deleted"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "vpc/a is deleted\n"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_resource_that_ends_while_its_phase_is_waited_for_is_5() {
    let fake = changing("Deleted").await;
    let ended = fake.run(&["wait", "vpc/a", "--for", "phase=Ready"]).await;
    assert_eq!(ended.code, 5, "{}", ended.stderr);
}

#[tokio::test]
async fn a_server_without_news_is_looked_at_all_the_same() {
    let looked = AtomicBool::new(false);
    let fake = Fake::start(
        move |operation, _| {
            Ok(match operation {
                "Position" => json!({"events": {"position": "7"}}),
                "State" => json!({"resource": resource("vpc", "a", "Reconciling")}),
                // Away for a moment, then back and done.
                _ if !looked.swap(true, Ordering::SeqCst) => {
                    return Err(refusal("UNAVAILABLE", "restarting"));
                }
                _ => json!({"resource": resource("vpc", "a", "Ready")}),
            })
        },
        |_, _| vec![Step::Error("BAD_REQUEST", "no subscriptions here")],
    )
    .await;
    let ended = fake.run(&["wait", "vpc/a", "--for", "phase=Ready"]).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[tokio::test]
async fn time_is_up_with_3_and_the_reason() {
    let fake = Fake::answering(|operation, _| {
        Ok(match operation {
            "Position" => json!({"events": {"position": "7"}}),
            _ => json!({"resource": resource("vpc", "a", "Reconciling")}),
        })
    })
    .await;
    let ended = fake.run(&["wait", "vpc/a", "--for", "phase=Ready", "--timeout", "200ms"]).await;
    assert_eq!(ended.code, 3);
    let said = "error: time is up; vpc/a is Reconciling: waits for account/a to be Ready\n";
    assert_eq!(ended.stderr, said);
}
