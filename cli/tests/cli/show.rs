//! `converge get`, `list`, `describe` and `tree`.

use crate::fake::{Fake, Step};
use crate::things::{change, page, resource, without_instants};
use expect_test::expect;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

fn kinds() -> Value {
    let manifest = json!({
        "kind": "vpc", "kind_version": 1, "reactions": [{"name": "work"}],
        "printer_columns": [{"name": "CIDR", "pointer": "/spec/cidr"}, {"name": "Id", "pointer": "/status/vpc_id"}],
    });
    json!({"kinds": [{"kind": "vpc", "kindVersion": 1, "provider": "vpc", "manifest": manifest}]})
}

fn answers(operation: &str, variables: &Value) -> Result<Value, Value> {
    Ok(match operation {
        "Kinds" => kinds(),
        "Resource" | "Describe" => json!({"resource": resource("vpc", "a", "Reconciling")}),
        "ProviderConfigs" => json!({"providerConfigs": [{
            "name": "d", "kind": "vpc", "kindVersion": 1, "isDefault": true, "spec": {"x": 1}, "dataBytes": 3,
        }]}),
        "Resources" if variables["filter"]["owner"] == "id-a" => {
            match variables["filter"]["phase"][0].as_str() {
                None => page(vec![resource("key", "k1", "Ready"), resource("key", "k2", "Failed")]),
                Some("Failed") => page(vec![resource("key", "k2", "Failed")]),
                Some(_) => page(vec![]),
            }
        }
        "Resources" if variables["after"].is_null() => {
            let mut first = page(vec![resource("vpc", "a", "Ready")]);
            first["resources"]["pageInfo"] = json!({"hasNextPage": true, "endCursor": "c1"});
            first
        }
        "Resources" => page(vec![resource("vpc", "a-longer-name", "Reconciling")]),
        "Tree" => json!({"tree": {
            "nodes": [
                {"depth": 0, "resource": resource("zone", "root", "Reconciling")},
                {"depth": 1, "resource": resource("vpc", "a", "Ready")},
                {"depth": 1, "resource": resource("vpc", "b", "Reconciling")},
            ],
            "pageInfo": {"hasNextPage": false, "endCursor": null},
        }}),
        other => panic!("{other} is not asked for here"),
    })
}

async fn shown(args: &[&str]) -> String {
    let fake = Fake::answering(answers).await;
    let ended = fake.run(args).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{args:?}");
    without_instants(&ended.stdout)
}

#[tokio::test]
async fn a_list_is_a_table_with_the_kinds_own_columns_over_all_pages() {
    expect![[r"
        NAME   PHASE   CIDR          ID      AGE
        a      Ready   10.0.0.0/16   vpc-1   3d
        a-longer-name   Reconciling   10.0.0.0/16   vpc-1   3d"]]
    .assert_eq(&shown(&["list", "vpc"]).await);
}

#[tokio::test]
async fn wide_shows_more() {
    expect![[r"
        NAME   PHASE   CIDR          ID      VERSION   GENERATION   SYNCED   OWNER       AGE   WHY
        a      Ready   10.0.0.0/16   vpc-1   v1        2            1        zone/root   3d
        a-longer-name   Reconciling   10.0.0.0/16   vpc-1   v1        2            1        zone/root   3d    waits for account/a to be Ready"]]
    .assert_eq(&shown(&["list", "vpc", "-o", "wide"]).await);
}

#[tokio::test]
async fn names_are_references() {
    assert_eq!(shown(&["list", "resource", "-o", "name"]).await, "vpc/a\nvpc/a-longer-name");
    assert_eq!(shown(&["get", "vpc/a", "-o", "name"]).await, "vpc/a");
    assert_eq!(shown(&["get", "kind", "-o", "name"]).await, "kind/vpc/v1");
    assert_eq!(shown(&["list", "providerconfig", "-o", "name"]).await, "providerconfig/d");
}

#[tokio::test]
async fn a_list_in_json_is_one_document_with_the_position_it_was_read_at() {
    let list: Value = serde_json::from_str(&shown(&["list", "vpc", "-o", "json"]).await).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(list["items"][1]["name"], "a-longer-name");
    assert_eq!(list["position"], 99);
}

#[tokio::test]
async fn a_resource_in_yaml_is_its_document_and_what_became_of_it() {
    let yaml = shown(&["get", "vpc/a", "-o", "yaml"]).await;
    let dated = ["- last_transition: ", "  at: ", "created_at: ", "updated_at: "];
    let undated: Vec<&str> =
        yaml.lines().filter(|line| !dated.iter().any(|key| line.contains(key))).collect();
    expect![[r"
        type: resource
        kind: vpc
        kind_version: 1
        name: a
        labels:
          team: payments
        spec:
          cidr: 10.0.0.0/16
          share: 0.1
        provider_config_ref: null
        deletion_protection: false
        depends_on:
        - id: id-a
          kind: account
          name: a
          values:
          - dependent_field: /account_id
            source_field: /account_id
        id: id-a
        phase: Reconciling
        why: waits for account/a to be Ready
        status:
          vpc_id: vpc-1
        conditions:
          message: waits for account/a to be Ready
          observed_generation: 2
          reason: Waiting
          status: 'False'
          type: Ready
        effective_spec:
          account_id: '123'
          cidr: 10.0.0.0/16
          share: 0.1
        revision: 3
        generation: 2
        synced_generation: 1
        epoch: 4
        owner:
          id: id-root
          kind: zone
          name: root
        root: id-root
        attempts: 1
        last_failure:
          attempt: 1
          message: quota exceeded
          reaction: work
          terminal: false
        claim: null
        retry_at: null"]]
    .assert_eq(&undated.join("\n"));
}

#[tokio::test]
async fn a_kind_is_shown_as_a_manifest_that_can_be_applied_again() {
    let kind: Value = serde_json::from_str(&shown(&["get", "kind/vpc/v1", "-o", "json"]).await).unwrap();
    assert_eq!((&kind["type"], &kind["kind_version"]), (&json!("kind"), &json!(1)));
    expect![[r"
        NAME     PROVIDER   REACTIONS
        vpc/v1   vpc        work"]]
    .assert_eq(&shown(&["list", "kind"]).await);
    expect![[r"
        NAME   KIND     DEFAULT   DATA BYTES
        d      vpc/v1   yes       3"]]
    .assert_eq(&shown(&["get", "providerconfig/d"]).await);
}

#[tokio::test]
async fn filters_reach_the_server() {
    let fake = Fake::answering(answers).await;
    let args =
        ["list", "resource", "--kind", "vpc", "-l", "team=payments,env=", "--phase", "failed,Degraded"];
    fake.run(&args).await;
    let asked = fake.asked();
    let (_, body) = asked.iter().find(|(operation, _)| operation == "Resources").unwrap();
    let request: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        request["variables"]["filter"],
        json!({"kind": "vpc", "labels": {"team": "payments", "env": ""}, "phase": ["Failed", "Degraded"]})
    );
}

#[tokio::test]
async fn describe_says_everything_that_helps() {
    expect![[r#"
        Name:         a
        Kind:         vpc/v1
        Id:           id-a
        Phase:        Reconciling
        Why:          waits for account/a to be Ready
        Labels:       team=payments
        Generation:   2 (synced 1), revision 3, epoch 4
        Owner:        zone/root
        Created:      INSTANT (3d ago)
        Spec:
          cidr: 10.0.0.0/16
          share: 0.1
        Effective spec:
          account_id: '123'
          cidr: 10.0.0.0/16
          share: 0.1
        Status:
          vpc_id: vpc-1
        Conditions:
          TYPE    STATUS   REASON    SINCE   MESSAGE
          Ready   False    Waiting   3d      waits for account/a to be Ready
        Last failure: work attempt 1, 3d ago: quota exceeded
        Depends on:
          account/a: /account_id from its /account_id = "123" (event 41)
        Children:     1 of 2 Ready
          NAME     PHASE    WHY
          key/k2   Failed   waits for account/a to be Ready
        Events:
          7 INSTANT vpc/a Created version ? (ann)
          9 INSTANT vpc/a Claimed ? by ?, generation ?, epoch ? (ann)"#]]
    .assert_eq(&shown(&["describe", "vpc/a"]).await);
}

#[tokio::test]
async fn describe_tells_what_holds_a_resource_and_what_is_wrong_with_its_edges() {
    let fake = Fake::answering(|operation, variables| match operation {
        "Describe" => {
            let mut held = resource("vpc", "a", "Quarantined");
            held["quarantineReason"] = json!("disk swap");
            held["keptUntil"] = json!("2026-01-02T03:04:05.678Z");
            held["deletionProtection"] = json!(true);
            held["conditions"][0]["type"] = json!("PruneHeld");
            let flow = |flowed: bool, reason: Value| {
                json!({"dependentField": "/x", "sourceField": "/y", "flowed": flowed, "value": null,
                    "position": null, "reason": reason})
            };
            held["dependsOn"] = json!([
                {"kind": "account", "name": "a", "id": "1", "conflicted": false,
                    "values": [flow(true, json!("missing")), flow(false, json!("it is null")), flow(false, Value::Null)]},
                {"kind": "account", "name": "b", "id": null, "conflicted": true, "values": []},
                {"kind": "account", "name": "c", "id": null, "conflicted": false, "values": []},
            ]);
            Ok(json!({"resource": held}))
        }
        _ => answers(operation, variables),
    })
    .await;
    let shown = fake.run(&["describe", "vpc/a"]).await.stdout;
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    for line in [
        "Quarantine:   disk swap; `converge release vpc/a` ends it",
        "Protection:   deletion protection is on",
        "to let it happen: converge confirm-prune vpc/a --digest DIGEST",
        "account/a: /x from its /y = null (missing), /x from its /y (it is null), /x from its /y (not yet)",
        "account/b (its name is held by another)",
        "account/c (missing)",
    ] {
        assert!(lines.contains(&line), "{line}\n{shown}");
    }
    assert!(shown.contains("its composer dropped it"), "{shown}");
}

#[tokio::test]
async fn a_tree_ends_with_its_summary() {
    expect![[r"
        zone/root  Reconciling
        ├─ vpc/a  Ready
        └─ vpc/b  Reconciling

        KIND    TOTAL   READY   RECONCILING
        vpc     2       1       1
        zone    1       0       1
        (all)   3       1       2"]]
    .assert_eq(&shown(&["tree", "zone/root"]).await);
}

#[tokio::test]
async fn watching_goes_on_where_the_list_was_read_and_tells_what_leaves() {
    let fake = Fake::start(answers, |_, _| {
        let changed = resource("vpc", "a", "Ready");
        vec![
            Step::Item("resourceChanged", change(100, "Worked", &changed)),
            Step::Item("resourceChanged", change(101, "Deleted", &changed)),
        ]
    })
    .await;
    let mut child = fake.spawn(&["list", "vpc", "--watch"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = Vec::new();
    while shown.len() < 5 {
        shown.push(lines.next_line().await.unwrap().unwrap());
    }
    child.kill().await.unwrap();
    expect![[r"
        a               Ready         10.0.0.0/16   vpc-1   3d
        a               Deleted"]]
    .assert_eq(&shown[3..].join("\n"));
    assert_eq!(fake.subscribed()[0]["from"], "99");
}
