//! Exit codes, one by one.

use crate::fake::{Fake, command, refusal};
use serde_json::json;

#[tokio::test]
async fn every_kind_of_refusal_has_its_own_code() {
    for (code, exit) in
        [("CONFLICT", 4), ("NOT_FOUND", 5), ("UNAVAILABLE", 1), ("BAD_REQUEST", 1), ("NEW", 1)]
    {
        let fake = Fake::answering(move |_, _| Err(refusal(code, "because"))).await;
        let ended = fake.run(&["delete", "vpc/a"]).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (exit, "error: because\n"), "{code}");
        assert_eq!(ended.stdout, "", "{code}");
    }
}

#[tokio::test]
async fn a_thing_that_is_not_there_is_5() {
    let fake = Fake::answering(|operation, _| {
        Ok(match operation {
            "Tree" => json!({"tree": {"nodes": [], "pageInfo": {"hasNextPage": false, "endCursor": null}}}),
            "Kinds" => json!({"kinds": []}),
            "ProviderConfigs" => json!({"providerConfigs": []}),
            "Position" => json!({"events": {"position": "7"}}),
            "Graph" => json!({"graph": null}),
            _ => json!({"resource": null}),
        })
    })
    .await;
    for args in [
        &["get", "vpc/a"][..],
        &["get", "kind/vpc/v1"],
        &["get", "providerconfig/d"],
        &["describe", "vpc/a"],
        &["tree", "vpc/a"],
        &["graph", "vpc/a"],
        &["wait", "vpc/a", "--for", "phase=Ready"],
    ] {
        let ended = fake.run(args).await;
        assert_eq!(ended.code, 5, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("does not exist"), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
}

#[tokio::test]
async fn a_command_line_that_makes_no_sense_is_2_and_asks_nothing() {
    let fake = Fake::answering(|_, _| panic!("nothing may be asked")).await;
    for args in [
        &["apply"][..],
        &["apply", "-f", "/no/such/file.yaml"],
        &["get", "vpc/"],
        &["list", "vpc/a"],
        &["list", "vpc", "--kind", "account"],
        &["list", "vpc", "-l", "team"],
        &["list", "vpc", "--phase", "Happy"],
        &["list", "kind", "--watch"],
        &["describe", "vpc"],
        &["wait", "vpc/a", "--for", "happiness"],
        &["delete"],
        &["delete", "vpc/a", "-l", "team=x"],
        &["delete", "kind/vpc"],
        &["quarantine"],
        &["abandon", "vpc/a"],
        &["abandon", "vpc/a", "--reason", ""],
        &["confirm-prune", "zone/z"],
        &["graph", "vpc"],
        &["graph", "vpc/a", "-o", "svg"],
        &["completion", "tcsh"],
        &["serve"],
        &["demo", "--fault-rate", "2"],
        &["frobnicate"],
        &["--server", "localhost:8080", "list", "vpc"],
    ] {
        let ended = fake.run(args).await;
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn an_unreachable_server_is_1_and_named() {
    // Bound and dropped: nobody listens there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let output = command(&server, &["list", "vpc", "-o", "name"]).output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.starts_with(&format!("error: cannot reach the server at {server}: ")), "{stderr}");
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_failure() {
    let fake = Fake::answering(|_, variables| {
        let after: u64 = variables["after"].as_str().map_or(0, |after| after.parse().unwrap());
        let nodes: Vec<_> = (1..=500).map(|step| crate::things::event(after + step, "Created")).collect();
        Ok(json!({"events": {"nodes": nodes, "endPosition": (after + 500).to_string(), "hasMore": true}}))
    })
    .await;
    let mut child = fake.spawn(&["events"]);
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
