//! The documents of the demo are what they claim to be.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use converge_sdk::{Reaction, Request};
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

/// The same id as `stdio/account.py` issues for this resource; the built-in worker's tests run that.
#[tokio::test]
async fn the_rust_leaf_issues_the_id_that_its_python_twin_issues() {
    let leaves = landing_zone::providers(&landing_zone::Knobs::default()).unwrap();
    let account = leaves.iter().find(|leaf| leaf.kind() == "account").unwrap();
    let spec = json!({ "team_name": "t", "email": "" });
    let outcome = account.work(Request::example(Reaction::Work, "account", "n", spec)).await.unwrap();
    assert_eq!(outcome.get_status().unwrap().value().unwrap(), json!({ "account_id": "748706536336" }));
}
