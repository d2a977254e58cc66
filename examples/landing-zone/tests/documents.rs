//! The documents of the demo are what they claim to be.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use converge_builtin::Stdio;
use converge_sdk::{Provider, ProviderConfig, Reaction, Request};
use serde_json::{Value, json};
use std::path::Path;

fn document(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_kind_that_the_worker_serves_has_its_manifest_here() {
    for provider in landing_zone::providers(&landing_zone::Knobs::default()).unwrap() {
        let manifest = document(&format!("kinds/{}.kind.json", provider.kind()));
        assert_eq!((&manifest["type"], &manifest["kind"]), (&json!("kind"), &json!(provider.kind())));
    }
}

#[tokio::test]
async fn the_python_leaf_answers_over_stdio_as_the_rust_leaf_does() {
    let mut config = document("stdio/account-stdio.providerconfig.json")["spec"].clone();
    config["args"] = json!([concat!(env!("CARGO_MANIFEST_DIR"), "/stdio/account.py")]);
    let request = |reaction, team: &str| {
        let spec = json!({ "team_name": team, "email": "" });
        let mut request = Request::example(reaction, "account-stdio", "n", spec);
        request.default_config = Some(ProviderConfig {
            name: "c".to_owned(),
            spec: config.clone().into(),
            data: Vec::new().into(),
            version: 1,
        });
        request
    };
    let leaves = landing_zone::providers(&landing_zone::Knobs::default()).unwrap();
    let rust = leaves.iter().find(|leaf| leaf.kind() == "account").unwrap();
    let ours = rust.work(request(Reaction::Work, "t")).await.unwrap();
    let theirs = Stdio::by_name().work(request(Reaction::Work, "t")).await.unwrap();
    let status = |outcome: &converge_sdk::Outcome| outcome.get_status().unwrap().value().unwrap();
    assert_eq!(status(&ours), status(&theirs));
    assert!(Stdio::by_name().work(request(Reaction::Work, "LOUD")).await.unwrap_err().is_terminal());
    assert!(Stdio::by_name().work(request(Reaction::Teardown, "t")).await.is_ok());
}
