//! `converge graph`, `summary` and `completion`.

use crate::fake::{Fake, command};
use expect_test::expect;
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::AsyncWriteExt;

async fn graph(complete: bool) -> Fake {
    Fake::answering(move |_, _| {
        Ok(json!({"graph": {
            "complete": complete,
            "nodes": [
                {"id": "1", "kind": "vpc", "name": "v", "phase": "Ready", "owner": {"id": "3", "kind": "zone", "name": "z"}},
                {"id": "2", "kind": "account", "name": "a", "phase": "Ready", "owner": null},
            ],
            "edges": [{"from": "1", "to": {"id": "2", "kind": "account", "name": "a", "conflicted": false, "values": [{
                "dependentField": "/id", "sourceField": "/account_id", "flowed": true, "value": "123",
                "sourceSequence": "3", "position": "41", "reason": null,
            }]}}],
        }}))
    })
    .await
}

#[tokio::test]
async fn a_graph_in_json_is_whole_and_in_the_words_of_the_other_outputs() {
    let ended = graph(true).await.run(&["graph", "vpc/v", "-o", "json"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["nodes"][0]["owner"]["name"], "z");
    assert_eq!(
        shown["edges"][0]["to"]["values"][0],
        json!({"dependent_field": "/id", "source_field": "/account_id", "flowed": true, "value": "123",
            "source_sequence": 3, "position": 41, "reason": null})
    );
}

#[tokio::test]
async fn a_graph_that_is_cut_says_so_on_stderr_only() {
    let ended = graph(false).await.run(&["graph", "vpc/v", "-o", "mermaid"]).await;
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.starts_with("flowchart LR\n"), "{}", ended.stdout);
    assert_eq!(
        ended.stderr,
        "note: this is not all: the server shows 2 resources; ask for one further down\n"
    );
}

#[tokio::test]
async fn a_summary_counts_by_kind_and_phase() {
    let fake = Fake::answering(|_, _| {
        Ok(json!({"summary": {"counts": [
            {"kind": "vpc", "phase": "Ready", "count": 3}, {"kind": "vpc", "phase": "Failed", "count": 1},
        ]}}))
    })
    .await;
    expect![[r"
        KIND   TOTAL   FAILED   READY
        vpc    4       1        3
    "]]
    .assert_eq(&fake.run(&["summary"]).await.stdout);
    let shown = fake.run(&["summary", "-o", "json"]).await.stdout;
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), json!({"vpc": {"Failed": 1, "Ready": 3}}));
}

#[tokio::test]
async fn a_completion_script_knows_every_command_and_is_the_same_each_time() {
    let fake = Fake::answering(|_, _| panic!("nothing may be asked")).await;
    for shell in ["bash", "zsh", "fish"] {
        let ended = fake.run(&["completion", shell]).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{shell}");
        for word in ["apply", "confirm-prune", "quarantine", "cascade", "digest"] {
            assert!(ended.stdout.contains(word), "{shell}: {word}");
        }
        assert_eq!(fake.run(&["completion", shell]).await.stdout, ended.stdout, "{shell}");
    }
}

#[tokio::test]
async fn bash_can_read_its_completion_script() {
    let script = command("http://localhost", &["completion", "bash"]).output().await.unwrap().stdout;
    // `-n` reads without running.
    let mut bash = tokio::process::Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = bash.stdin.take().unwrap();
    stdin.write_all(&script).await.unwrap();
    drop(stdin);
    assert!(bash.wait().await.unwrap().success());
}
