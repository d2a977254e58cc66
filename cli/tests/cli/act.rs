//! `converge quarantine`, `release`, `resync`, `abandon` and `confirm-prune`.

use crate::fake::{Fake, refusal};
use crate::things::resource;
use serde_json::{Value, json};

/// What a server says that does as it is told; `b` was so already.
fn acted(variables: &Value) -> Value {
    let one = json!([{"kind": variables["kind"], "name": variables["name"]}]);
    let selected = json!([{"kind": "vpc", "name": "a"}, {"kind": "vpc", "name": "b"}]);
    let targets = &variables["targets"];
    let names = if targets.is_null() { &one } else { targets.get("names").unwrap_or(&selected) };
    let results = names.as_array().unwrap().iter().map(|name| {
        let notes = if name["name"] == "a" { json!(["finalizer dns may have leaked"]) } else { json!([]) };
        json!({
            "id": format!("id-{}", name["name"].as_str().unwrap()), "kind": name["kind"], "name": name["name"],
            "changed": name["name"] != "b", "notes": notes,
        })
    });
    json!({"acted": {"position": "7", "results": results.collect::<Vec<_>>()}})
}

/// A server on which everything that is looked at is in `phase`; None: it is gone.
async fn server(phase: Option<&'static str>) -> Fake {
    Fake::answering(move |operation, variables| {
        Ok(match operation {
            "StateById" => json!({"resource": phase.map(|phase| resource("vpc", "a", phase))}),
            "Summary" => json!({"summary": {"counts": []}}),
            "Failed" => json!({"resources": {"nodes": [], "position": "7",
                "pageInfo": {"hasNextPage": false, "endCursor": null}}}),
            _ => acted(variables),
        })
    })
    .await
}

#[tokio::test]
async fn each_action_asks_for_itself_and_says_what_was_so_already() {
    for (action, operation, done, already) in [
        ("quarantine", "Quarantine", "quarantined", "quarantined already"),
        ("release", "Release", "released", "not in quarantine"),
        ("resync", "Resync", "resync requested", "resync requested already"),
        ("abandon", "Abandon", "abandoned", "gone already"),
    ] {
        let fake = server(None).await;
        let ended = fake.run(&[action, "vpc/a", "vpc/b", "--reason", "disk swap"]).await;
        assert_eq!(ended.stdout, format!("vpc/a {done}\nvpc/b {already}\n"), "{action}: {}", ended.stderr);
        assert_eq!(ended.stderr, "note: vpc/a: finalizer dns may have leaked\n");
        let asked = fake.asked();
        assert_eq!((asked.len(), asked[0].0.as_str()), (1, operation));
        let body: Value = serde_json::from_str(&asked[0].1).unwrap();
        let names = json!([{"kind": "vpc", "name": "a"}, {"kind": "vpc", "name": "b"}]);
        assert_eq!(body["variables"], json!({"targets": {"names": names}, "reason": "disk swap"}));
    }
}

#[tokio::test]
async fn a_selection_is_printed_and_an_empty_one_is_said() {
    let ended = server(None).await.run(&["abandon", "-l", "team=x", "--reason", "r"]).await;
    assert_eq!(ended.stdout, "vpc/a abandoned\nvpc/b gone already\n", "{}", ended.stderr);
    let fake = Fake::answering(|_, _| Ok(json!({"acted": {"position": "7", "results": []}}))).await;
    let ended = fake.run(&["resync", "-l", "team=x", "--wait"]).await;
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", "nothing is selected\n"));
}

#[tokio::test]
async fn a_prune_is_confirmed_by_its_digest() {
    let fake = server(None).await;
    let ended = fake.run(&["confirm-prune", "zone/b", "--digest", "d1"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "zone/b prune confirmed already\n"));
    let body: Value = serde_json::from_str(&fake.asked()[0].1).unwrap();
    assert_eq!(body["variables"], json!({"kind": "zone", "name": "b", "digest": "d1", "reason": ""}));
    let fake = Fake::answering(|_, _| Err(refusal("CONFLICT", "the digest is of another set"))).await;
    assert_eq!(fake.run(&["confirm-prune", "zone/b", "--digest", "d0"]).await.code, 4);
}

#[tokio::test]
async fn a_resync_or_release_is_waited_for_until_ready_or_failed_or_time_is_up() {
    for action in ["resync", "release"] {
        for (phase, code) in [("Ready", 0), ("Failed", 1), ("Reconciling", 3)] {
            let ended =
                server(Some(phase)).await.run(&[action, "vpc/a", "--wait", "--timeout", "300ms"]).await;
            assert_eq!(ended.code, code, "{action} {phase}: {}", ended.stderr);
        }
    }
}

#[tokio::test]
async fn an_abandoned_resource_is_waited_for_until_it_is_gone() {
    let words = ["abandon", "vpc/a", "--reason", "r", "--wait", "--timeout", "300ms"];
    let ended = server(None).await.run(&words).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "vpc/a abandoned\nvpc/a deleted\n"));
    assert_eq!(server(Some("Deleting")).await.run(&words).await.code, 3);
}
