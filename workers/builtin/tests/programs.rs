//! Real programs, with all the ways in which programs end.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use converge_builtin::{STDSHELL_KIND, StdShell, Stdio};
use converge_sdk::{Input, Outcome, Provider, ProviderConfig, Reaction, Request, TaskError};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

fn config(spec: Value) -> ProviderConfig {
    ProviderConfig { name: "c".to_owned(), spec: spec.into(), data: vec![1, 2, 3].into(), version: 1 }
}

fn request(reaction: Reaction, script: &str, settings: Value) -> Request {
    let mut request = Request::example(reaction, "thing", "n", json!({ "n": 1 }));
    request.default_config =
        Some(config(json!({ "command": "sh", "args": ["-c", script], "settings": settings })));
    request
}

async fn sh(script: &str) -> Result<Outcome, TaskError> {
    Stdio::by_name().work(request(Reaction::Work, script, json!({}))).await
}

fn status(outcome: &Outcome) -> Value {
    outcome.get_status().unwrap().value().unwrap()
}

/// Waits until no process has `marker` in its command line.
fn nobody_runs(marker: &str) -> bool {
    let patience = Instant::now();
    while patience.elapsed() < Duration::from_secs(20) {
        let running = std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
            std::fs::read_to_string(process.path().join("cmdline")).is_ok_and(|line| line.contains(marker))
        });
        if !running {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[tokio::test]
async fn exit_0_is_a_success_with_whatever_was_printed() {
    let outcome = sh(r#"echo '{"status":{"id":"x"},"healthy":false,"changed":true,"requeue_after_secs":7}'"#);
    let outcome = outcome.await.unwrap();
    assert_eq!(status(&outcome), json!({ "id": "x" }));
    assert_eq!((outcome.get_healthy(), outcome.get_changed()), (Some(false), Some(true)));
    assert_eq!(outcome.get_requeue(), (false, Some(Duration::from_secs(7))));
    assert!(sh("true").await.unwrap().get_status().is_none());
}

#[tokio::test]
async fn exit_2_is_terminal_and_any_other_exit_or_signal_is_transient_with_stderrs_tail() {
    let error = sh("echo oh no >&2; exit 2").await.unwrap_err();
    assert_eq!((error.is_terminal(), error.message()), (true, "exit status 2: oh no"));
    let error = sh("echo later >&2; exit 7").await.unwrap_err();
    assert_eq!((error.is_terminal(), error.message()), (false, "exit status 7: later"));
    let error = sh("kill -9 $$").await.unwrap_err();
    assert!(!error.is_terminal() && error.message().contains("signal: 9"), "{error}");
    let error = sh("yes 0123456789 | head -c 1000000 >&2; echo the end >&2; exit 1").await.unwrap_err();
    assert!(error.message().ends_with("the end") && error.message().len() < 5000);
}

#[tokio::test]
async fn a_failing_program_keeps_the_status_it_printed() {
    let error = sh(r#"echo '{"status":{"half":"made"}}'; exit 1"#).await.unwrap_err();
    assert_eq!(error.status().unwrap().value().unwrap(), json!({ "half": "made" }));
}

#[tokio::test]
async fn the_program_reads_the_whole_question_and_of_the_config_only_its_settings() {
    let script = r#"exec python3 -c '
import json, sys
q = json.load(sys.stdin)
print(json.dumps({"status": {"q": q}}))'"#;
    let mut request = request(Reaction::Rollup, script, json!({ "region": "r1" }));
    request.config_override = Some(config(json!({ "settings": { "zone": "z" } })));
    request.trigger = "childrenSettled".to_owned();
    request.labels.insert("team".to_owned(), "t".to_owned());
    request.input = Input::ready(&[json!({ "kind": "vpc", "name": "v" })]);
    let outcome = Stdio::by_name().work(request).await.unwrap();
    assert_eq!(
        status(&outcome)["q"],
        json!({
            "reaction": "rollup", "trigger": "childrenSettled",
            "id": "00000000-0000-4000-8000-000000000001", "kind": "thing", "kind_version": 1, "name": "n",
            "labels": { "team": "t" }, "generation": 1, "attempt": 1,
            "idempotency_key": "example/rollup/thing/n", "spec": { "n": 1 },
            "config": { "region": "r1", "zone": "z" }, "bundle": "AQID",
            "descendants": [{ "kind": "vpc", "name": "v" }],
        })
    );
}

#[tokio::test]
async fn a_composer_prints_its_children_and_their_numbers_are_not_touched() {
    let script =
        r#"echo '{"children":[{"kind":"a","kind_version":1,"name":"x","spec":{"n":1.10}}],"edges":[]}'"#;
    let outcome = Stdio::for_kind("fleet").work(request(Reaction::Compose, script, json!({}))).await.unwrap();
    let children: Vec<_> = outcome.get_composition().children().iter().collect();
    assert_eq!(children, [r#"{"kind":"a","kind_version":1,"name":"x","spec":{"n":1.10}}"#]);
}

#[tokio::test]
async fn an_answer_that_is_no_answer_is_a_failure_and_a_misspelt_field_is_none() {
    for output in ["not json", r#"{"childrens":[]}"#, r#"{"status":3}"#, "{} {}"] {
        let error = sh(&format!("echo '{output}'")).await.unwrap_err();
        assert!(error.message().starts_with("the program's output is not an answer"), "{error}");
        assert!(!error.is_terminal());
    }
}

#[tokio::test]
async fn too_much_output_is_a_terminal_failure_that_says_so() {
    let error = sh("yes").await.unwrap_err();
    assert!(error.is_terminal() && error.message().contains("more than 8388608 bytes"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_the_program_and_everything_it_started() {
    let marker = "86401.25";
    let script = format!("echo started >&2; (trap '' TERM; sleep {marker}; sleep {marker}) & sleep {marker}");
    let mut request = request(Reaction::Work, "", json!({}));
    request.default_config =
        Some(config(json!({ "command": "sh", "args": ["-c", script], "timeout_seconds": 0.5 })));
    let error = Stdio::by_name().work(request).await.unwrap_err();
    assert_eq!((error.is_terminal(), error.message()), (false, "timed out after 0.5 s: started"));
    assert!(nobody_runs(marker));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_ends_everything_too_and_so_does_dropping_the_handler() {
    for (marker, drop_it) in [("86402.25", false), ("86403.25", true)] {
        let folder = tempfile::tempdir().unwrap();
        let started = folder.path().join("started");
        let script = format!("sleep {marker} & touch {}; wait", started.display());
        let request = request(Reaction::Work, &script, json!({}));
        let cancelled = request.cancelled.clone();
        let running = tokio::spawn(async move { Stdio::by_name().work(request).await });
        wait_for(&started).await;
        if drop_it {
            running.abort();
        } else {
            cancelled.cancel();
            assert_eq!(running.await.unwrap().unwrap_err().message(), "cancelled");
        }
        assert!(nobody_runs(marker));
    }
}

async fn wait_for(path: &Path) {
    for _ in 0..1000 {
        if path.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} never appeared", path.display());
}

#[tokio::test]
async fn a_child_left_behind_does_not_hold_the_answer_and_does_not_outlive_it() {
    let marker = "86404.25";
    let outcome = sh(&format!(r#"sleep {marker} & echo '{{"status":{{"id":"x"}}}}'"#)).await.unwrap();
    assert_eq!(status(&outcome), json!({ "id": "x" }));
    assert!(nobody_runs(marker));
}

#[tokio::test]
async fn a_program_that_reads_nothing_or_does_not_exist_is_no_harm() {
    let mut unread = request(Reaction::Work, "exec true", json!({}));
    unread.spec = json!({ "padding": "x".repeat(1_000_000) }).into();
    Stdio::by_name().work(unread).await.unwrap();
    let mut missing = request(Reaction::Work, "", json!({}));
    missing.default_config = Some(config(json!({ "command": "/no/such/program" })));
    let error = Stdio::by_name().work(missing).await.unwrap_err();
    assert!(error.message().starts_with("`/no/such/program` cannot be started"), "{error}");
}

#[tokio::test]
async fn a_config_that_cannot_work_is_terminal_and_says_what_is_wrong() {
    let mut none = request(Reaction::Work, "", json!({}));
    none.default_config = None;
    let error = Stdio::by_name().work(none).await.unwrap_err();
    assert!(error.is_terminal() && error.message().contains("thing/v1 has no provider config"), "{error}");
    let mut misspelt = request(Reaction::Work, "", json!({}));
    misspelt.default_config = Some(config(json!({ "command": "sh", "arg": [] })));
    let error = Stdio::by_name().work(misspelt).await.unwrap_err();
    assert!(error.is_terminal() && error.message().contains("`arg`"), "{error}");
}

#[tokio::test]
async fn programs_do_not_see_the_workers_environment() {
    let outcome =
        sh(r#"echo "{\"status\":{\"cargo\":\"$CARGO_MANIFEST_DIR\",\"path\":\"$PATH\"}}""#).await.unwrap();
    assert_eq!(status(&outcome)["cargo"], "");
    assert_ne!(status(&outcome)["path"], "");
}

async fn shell(reaction: Reaction, spec: Value) -> Result<Outcome, TaskError> {
    StdShell.work(Request::example(reaction, "stdshell", "n", spec)).await
}

#[tokio::test]
async fn a_script_runs_with_its_interpreter_arguments_and_variables() {
    let outcome = shell(
        Reaction::Work,
        json!({
            "interpreter": "python3", "args": ["a", "b"], "env": { "X": "y" },
            "script": "import os, sys; print(sys.argv[1:], os.environ['X'], os.environ['CONVERGE_NAME'])",
        }),
    )
    .await
    .unwrap();
    assert_eq!(status(&outcome), json!({ "exit_code": 0, "stdout": "['a', 'b'] y n\n" }));
    assert_eq!(outcome.get_changed(), Some(true));
}

#[tokio::test]
async fn a_guard_that_exits_0_skips_the_script_and_says_that_nothing_changed() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made").display().to_string();
    let spec = json!({ "script": format!("echo x >> {made}"), "check": format!("test -e {made}") });
    let first = shell(Reaction::Work, spec.clone()).await.unwrap();
    let second = shell(Reaction::Work, spec.clone()).await.unwrap();
    assert_eq!((first.get_changed(), second.get_changed()), (Some(true), Some(false)));
    assert_eq!(std::fs::read_to_string(&made).unwrap(), "x\n");

    let mut again = Request::example(Reaction::Work, "stdshell", "n", spec);
    again.status = Some(status(&first).into());
    assert!(StdShell.work(again).await.unwrap().get_status().is_none());
}

#[tokio::test]
async fn a_script_fails_as_its_exit_says_and_its_teardown_runs_on_deletion() {
    let error = shell(Reaction::Work, json!({ "script": "echo why >&2; exit 2" })).await.unwrap_err();
    assert_eq!((error.is_terminal(), error.message()), (true, "exit status 2: why"));
    let error = shell(Reaction::Work, json!({ "script": "exit 3" })).await.unwrap_err();
    assert_eq!((error.is_terminal(), error.message()), (false, "exit status 3"));
    shell(Reaction::Teardown, json!({ "script": "exit 1" })).await.unwrap();
    let error =
        shell(Reaction::Teardown, json!({ "script": "true", "teardown": "exit 4" })).await.unwrap_err();
    assert_eq!(error.message(), "exit status 4");
}

#[test]
fn the_shipped_kind_declares_exactly_what_the_provider_reads() {
    let document: Value = serde_json::from_str(STDSHELL_KIND).unwrap();
    assert_eq!((&document["type"], &document["kind"]), (&json!("kind"), &json!(StdShell.kind())));
    let fields: Vec<&String> = document["spec_schema"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["args", "check", "env", "interpreter", "script", "teardown", "timeout_seconds"]);
}

/// The demo's leaf in Python, under the config that is shipped with it. Its Rust twin issues the same id.
#[tokio::test]
async fn the_demos_python_leaf_answers_over_stdio() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/landing-zone/stdio");
    let document = std::fs::read_to_string(demo.join("account-stdio.providerconfig.json")).unwrap();
    let mut spec = serde_json::from_str::<Value>(&document).unwrap()["spec"].clone();
    spec["args"] = json!([demo.join("account.py")]);
    let request = |reaction, team: &str| {
        let mut request =
            Request::example(reaction, "account-stdio", "n", json!({ "team_name": team, "email": "" }));
        request.default_config = Some(config(spec.clone()));
        request
    };
    let outcome = Stdio::by_name().work(request(Reaction::Work, "t")).await.unwrap();
    assert_eq!(status(&outcome), json!({ "account_id": "748706536336" }));
    assert!(Stdio::by_name().work(request(Reaction::Work, "LOUD")).await.unwrap_err().is_terminal());
    assert!(Stdio::by_name().work(request(Reaction::Teardown, "t")).await.is_ok());
}
