//! What is drawn, with names and pointers that try to break out of it.

use super::{dot, mermaid, table};
use crate::client::model::Graph;
use expect_test::expect;
use serde_json::json;

fn graph() -> Graph {
    let flow = |dependent: &str, source: &str, value: serde_json::Value| {
        json!({"dependentField": dependent, "sourceField": source, "flowed": true, "value": value,
            "sourceSequence": "3", "position": "41", "reason": null})
    };
    let waits = json!({"dependentField": "/x", "sourceField": "/ip", "flowed": false, "value": null,
        "sourceSequence": null, "position": null, "reason": "missing"});
    serde_json::from_value(json!({
        "complete": true,
        "nodes": [
            {"id": "1", "kind": "vpc", "name": "v", "phase": "Reconciling", "owner": {"id": "2", "kind": "account", "name": "a/b:c"}},
            {"id": "2", "kind": "account", "name": "a/b:c", "phase": "Ready", "owner": null},
        ],
        "edges": [
            {"from": "1", "to": {"id": "2", "kind": "account", "name": "a/b:c", "conflicted": false, "values": [
                flow("/a~1b\"]", "/日本|<x>", json!({"k": [1, null]})), flow("", "/#`\\", json!("é")),
                flow("/%%{init: {}}%%&lt;", "/a\nb\r", json!("line\nline"))]}},
            {"from": "1", "to": {"id": null, "kind": "tgw", "name": "t", "conflicted": false, "values": [waits]}},
            {"from": "2", "to": {"id": null, "kind": "tgw", "name": "u", "conflicted": true, "values": []}},
        ],
    }))
    .unwrap()
}

#[test]
fn a_table_says_which_value_came_from_where() {
    expect![[r#"
        RESOURCE                NEEDS                     FIELD                            VALUE            GIVEN BY EVENT
        vpc/v (Reconciling)     account/a/b:c (Ready)     /a~1b"] <- /日本|<x>             {"k":[1,null]}   41
        vpc/v (Reconciling)     account/a/b:c (Ready)     (all) <- /#`\                    "é"              41
        vpc/v (Reconciling)     account/a/b:c (Ready)     /%%{init: {}}%%&lt; <- /a\nb\r   "line\nline"     41
        vpc/v (Reconciling)     tgw/t (missing)           /x <- /ip                        waits: missing
        account/a/b:c (Ready)   tgw/u (held by another)"#]]
    .assert_eq(&table(&graph()));
}

#[test]
fn graphviz_gets_everything_quoted() {
    expect![[r#"
        digraph converge {
          rankdir=LR;
          node [shape=box, style=filled];
          "1" [label="vpc/v\nReconciling", fillcolor=khaki];
          "2" [label="account/a/b:c\nReady", fillcolor=palegreen];
          "tgw/t" [label="tgw/t\nmissing", style=dashed];
          "tgw/u" [label="tgw/u\nheld by another", style=dashed];
          "2" -> "1" [label="/日本|<x> → /a~1b\"]\n/#`\\ → (all)\n/a\\nb\\r → /%%{init: {}}%%&amp;lt;"];
          "tgw/t" -> "1" [label="/ip → /x"];
          "tgw/u" -> "2" [label=""];
        }"#]]
    .assert_eq(&dot::draw(&graph()));
}

#[test]
fn mermaid_gets_entities_for_whatever_ends_a_quote() {
    expect![[r#"
        flowchart LR
          n0["vpc/v<br/>Reconciling"]:::Reconciling
          n1["account/a/b:c<br/>Ready"]:::Ready
          n2["tgw/t<br/>missing"]:::missing
          n3["tgw/u<br/>held by another"]:::missing
          n1 -->|"/日本#124;#60;x#62; → /a~1b#34;]<br/>/#35;#96;#92; → (all)<br/>/a#92;nb#92;r → /#37;#37;#123;init: #123;#125;#125;#37;#37;#38;lt;"| n0
          n2 -->|"/ip → /x"| n0
          n3 --> n1
          classDef Ready fill:#98fb98
          classDef Reconciling fill:#f0e68c
          classDef missing stroke-dasharray: 5 5"#]]
    .assert_eq(&mermaid::draw(&graph()));
}
