//! `converge apply`.

use crate::fake::{Fake, refusal};
use crate::things::{page, resource};
use expect_test::expect;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

const VPC: &str = "{type: resource, kind: vpc, kind_version: 1, name: a, spec: {share: 1.10}}";

/// Answers an apply with one result per document.
fn applied(variables: &Value, verb: &str) -> Value {
    let results = variables["documents"].as_array().unwrap().iter().map(|document| {
        let kind = document["type"] == "kind";
        json!({
            "type": document["type"], "kind": if kind { "" } else { document["kind"].as_str().unwrap() },
            "name": if kind { json!(format!("{}/v1", document["kind"].as_str().unwrap())) } else { document["name"].clone() },
            "id": format!("id-{}", document["name"].as_str().unwrap_or("kind")), "verb": verb,
            "revision": "1", "generation": "1",
            "warnings": if kind { json!(["`orphan_grace_secs` is kept but not built yet"]) } else { json!([]) },
        })
    });
    json!({"apply": {"position": "42", "results": results.collect::<Vec<_>>()}})
}

#[tokio::test]
async fn each_document_gets_a_line_and_warnings_go_to_stderr() {
    let fake = Fake::answering(|_, variables| Ok(applied(variables, "created"))).await;
    let input = format!("{VPC}\n---\n{{type: kind, kind: vpc, kind_version: 1}}");
    let ended = fake.run_with_input(&["apply", "-f", "-"], &input).await;
    assert_eq!(ended.code, 0);
    expect![[r"
        kind/vpc/v1 created
        vpc/a created
    "]]
    .assert_eq(&ended.stdout);
    expect![[r"
        warning: kind/vpc/v1: `orphan_grace_secs` is kept but not built yet
    "]]
    .assert_eq(&ended.stderr);
}

#[tokio::test]
async fn numbers_reach_the_server_as_written() {
    let fake = Fake::answering(|_, variables| Ok(applied(variables, "unchanged"))).await;
    let json = r#"{"type":"resource","kind":"vpc","name":"b","spec":{ "big":18446744073709551615,"e":1E2 }}"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), VPC).unwrap();
    std::fs::write(folder.path().join("b.json"), json).unwrap();
    let ended = fake.run(&["apply", "-f", folder.path().to_str().unwrap()]).await;
    assert_eq!(ended.stdout, "vpc/a unchanged\nvpc/b unchanged\n");
    let (_, body) = &fake.asked()[0];
    assert!(body.contains(r#""share":1.10"#) && body.contains(json), "{body}");
}

#[tokio::test]
async fn every_violation_is_listed() {
    let fake = Fake::answering(|_, _| {
        let violation = |pointer, message| {
            json!({"document": 0, "subject": "vpc/a", "pointer": pointer, "message": message})
        };
        let violations = [violation("/spec/cidr", "is required"), violation("/spec/x", "unknown field")];
        Err(json!([{
            "message": "2 violation(s)", "extensions": {"code": "VALIDATION", "violations": violations},
        }]))
    })
    .await;
    let ended = fake.run_with_input(&["apply", "-f", "-"], VPC).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    expect![[r"
        error: 2 violations, nothing was applied
        vpc/a /spec/cidr: is required
        vpc/a /spec/x: unknown field
    "]]
    .assert_eq(&ended.stderr);
}

#[tokio::test]
async fn json_and_names_are_clean_on_stdout() {
    let fake = Fake::answering(|_, variables| Ok(applied(variables, "created"))).await;
    let ended = fake.run_with_input(&["apply", "-f", "-", "-o", "name"], VPC).await;
    assert_eq!(ended.stdout, "vpc/a\n");
    let ended = fake.run_with_input(&["apply", "-f", "-", "-o", "json"], VPC).await;
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(answer["position"], 42);
    assert_eq!(answer["results"][0]["verb"], "created");
}

#[tokio::test]
async fn a_large_set_goes_in_several_requests_and_says_so() {
    let fake = Fake::answering(|_, variables| Ok(applied(variables, "created"))).await;
    let documents: Vec<String> =
        (0..1_001).map(|n| format!(r#"{{"type":"resource","kind":"vpc","name":"n{n}"}}"#)).collect();
    let ended = fake.run_with_input(&["apply", "-f", "-", "-o", "name"], &documents.join("\n")).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 1_001);
    assert_eq!(fake.asked().len(), 2);
    expect![[r"
        1001 documents exceed one request; they go in 2 requests, each of them all or nothing
    "]]
    .assert_eq(&ended.stderr);
}

#[tokio::test]
async fn documents_that_cannot_be_read_are_never_sent() {
    let fake = Fake::answering(|_, _| panic!("nothing may be asked")).await;
    let ended = fake.run_with_input(&["apply", "-f", "-"], "a: 1\na: 2").await;
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.starts_with("error: stdin: the key `a` is there twice"), "{}", ended.stderr);
}

/// A server whose `vpc/a` goes through `phases`, one per look, and below which `failed` have failed.
async fn reconciling(
    verb: &'static str,
    phases: &'static [&'static str],
    failed: &'static [&'static str],
) -> Fake {
    let looks = AtomicUsize::new(0);
    Fake::answering(move |operation, variables| {
        Ok(match operation {
            "Apply" => applied(variables, verb),
            "StateById" if variables["id"] != "id-a" => {
                let name = variables["id"].as_str().unwrap().strip_prefix("id-").unwrap();
                json!({"resource": resource("account", name, "Failed")})
            }
            "StateById" => {
                let look = looks.fetch_add(1, Ordering::SeqCst).min(phases.len() - 1);
                json!({"resource": resource("vpc", "a", phases[look])})
            }
            "Failed" => page(failed.iter().map(|name| resource("account", name, "Failed")).collect()),
            "Summary" => {
                json!({"summary": {"counts": [{"kind": "vpc", "phase": "Reconciling", "count": 1}]}})
            }
            other => return Err(refusal("BAD_REQUEST", other)),
        })
    })
    .await
}

#[tokio::test]
async fn waiting_ends_with_0_when_everything_is_ready() {
    let fake = reconciling("created", &["Reconciling", "Ready"], &[]).await;
    let ended = fake.run_with_input(&["apply", "-f", "-", "--wait"], VPC).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "vpc/a created\n"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("1 resource Ready\n"), "{}", ended.stderr);
    // What is read includes what was written.
    let looks = fake.asked().into_iter().filter(|(operation, _)| operation == "StateById");
    assert!(looks.into_iter().all(|(_, body)| body.contains(r#""minPosition":"42""#)));
}

#[tokio::test]
async fn waiting_ends_with_1_when_the_resource_has_failed_for_good() {
    let fake = reconciling("configured", &["Reconciling", "Failed"], &[]).await;
    let ended = fake.run_with_input(&["apply", "-f", "-", "--wait"], VPC).await;
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.ends_with("error: vpc/a failed: quota exceeded (attempt 1)\n"), "{}", ended.stderr);
}

#[tokio::test]
async fn waiting_ends_with_1_when_something_below_it_has_failed_for_good() {
    let fake = reconciling("created", &["Reconciling"], &["b"]).await;
    let ended = fake.run_with_input(&["apply", "-f", "-", "--wait"], VPC).await;
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("account/b failed: quota exceeded"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_failure_older_than_the_edit_does_not_end_the_wait_for_it() {
    let fake = reconciling("configured", &["Reconciling", "Reconciling", "Ready"], &["b"]).await;
    let ended = fake.run_with_input(&["apply", "-f", "-", "--wait"], VPC).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[tokio::test]
async fn an_old_failure_ends_the_wait_once_the_edit_has_settled_with_it() {
    let fake = reconciling("configured", &["Reconciling", "Degraded"], &["b"]).await;
    let ended = fake.run_with_input(&["apply", "-f", "-", "--wait"], VPC).await;
    assert_eq!(ended.code, 1, "{}", ended.stderr);
}

#[tokio::test]
async fn waiting_ends_with_3_when_time_is_up_and_says_what_for() {
    let fake = reconciling("created", &["Reconciling"], &[]).await;
    let ended = fake.run_with_input(&["apply", "-f", "-", "--wait", "--timeout", "300ms"], VPC).await;
    assert_eq!(ended.code, 3);
    let said = "error: time is up; 1 not Ready yet\nvpc/a is Reconciling: waits for account/a to be Ready\n";
    assert!(ended.stderr.ends_with(said), "{}", ended.stderr);
}
