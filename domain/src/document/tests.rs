//! What a document may say, and how its faults are told.

use super::*;
use crate::json::faithful;
use crate::kind;
use serde_json::json;

fn faults(value: Value) -> Vec<String> {
    match parse(value, None) {
        Ok(document) => panic!("{document:?}"),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

fn resource(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({"kind": "vpc", "kind_version": 1, "name": "a", "spec": {"n": 1}});
    change(&mut value);
    value
}

fn read(value: Value) -> ResourceDocument {
    match parse(value, None).unwrap() {
        Document::Resource(resource) => resource,
        other => panic!("{other:?}"),
    }
}

#[test]
fn existing_documents_read_unchanged() {
    for text in [
        include_str!("../../tests/fixtures/account.kind.json"),
        include_str!("../../tests/fixtures/classicbom.kind.json"),
        include_str!("../../tests/fixtures/route.kind.json"),
        include_str!("../../tests/fixtures/tgw.kind.json"),
        include_str!("../../tests/fixtures/vpc.kind.json"),
    ] {
        let value = faithful::parse(text).unwrap();
        let Ok(Document::Kind(manifest)) = parse(value.clone(), None) else { panic!("not inferred: {text}") };
        assert_eq!(kind::check(&manifest), []);
        assert_eq!(parse(value.clone(), Some("kind")), Ok(Document::Kind(manifest.clone())));
        // Reading loses nothing: what is stored says what was written.
        assert!(crate::json::equal(&serde_json::to_value(&manifest).unwrap(), &value), "{text}");
    }
    let bom = faithful::parse(include_str!("../../tests/fixtures/resource-bom-58-domains.json")).unwrap();
    let resource = read(bom);
    assert_eq!((resource.kind.as_str(), resource.name.as_str()), ("classicbom", "demo-region-1"));
    assert_eq!(resource.spec["deployment_instance"]["functional_domains"].as_array().map(Vec::len), Some(58));
}

#[test]
fn the_type_word_decides_then_the_default_then_the_look() {
    let manifest = || json!({"kind": "a", "kind_version": 1, "reactions": []});
    for word in ["kind", "manifest", "crd"] {
        let mut typed = manifest();
        typed["type"] = json!(word);
        assert!(matches!(parse(typed, Some("resource")), Ok(Document::Kind(_))), "{word}");
        assert!(matches!(parse(manifest(), Some(word)), Ok(Document::Kind(_))), "{word}");
    }
    assert!(matches!(parse(manifest(), None), Ok(Document::Kind(_))));
    assert!(matches!(parse(resource(|_| {}), None), Ok(Document::Resource(_))));
    assert_eq!(
        faults(json!({"type": "resuorce"})),
        ["/type: `resuorce` is not a type of document; did you mean `resource`?"]
    );
    assert_eq!(parse(json!([]), None).unwrap_err(), [Violation::new("", "must be an object, but is a list")]);
}

#[test]
fn a_resource_reads_with_all_its_fields() {
    let document = read(
        json!({"type": "resource", "kind": "vpc", "kind_version": 1.0, "name": "payments/prod",
        "labels": {"team": "payments", "env": ""}, "spec": {"cidr": "10.0.0.0/16"}, "provider_config_ref": "vpc-payments",
        "expected_revision": 3, "deletion_protection": true, "management": "full",
        "depends_on": [{"kind": "account", "name": "p", "values":
            [{"dependent_field": "/account_id", "source_field": "/account_id"}]}]}),
    );
    assert_eq!(document.kind_version, 1);
    assert_eq!(document.expected_revision, Some(Revision(3)));
    assert_eq!(document.depends_on[0].values[0].dependent_field, "/account_id");
    assert_eq!(document.labels["env"], "");
}

#[test]
fn a_missing_spec_is_empty_and_a_null_one_null() {
    assert_eq!(read(resource(|r| drop(r.as_object_mut().unwrap().remove("spec")))).spec, json!({}));
    assert_eq!(read(resource(|r| r["spec"] = json!(null))).spec, json!(null));
    assert_eq!(read(resource(|r| r["labels"] = json!(null))).labels, BTreeMap::new());
}

#[test]
fn all_faults_of_a_document_are_told_at_once() {
    let found = faults(json!({"kind": 1, "kind_version": 0, "naem": "a", "labels": {"a b": "x", "t": 1},
        "deletion_protection": "yes", "expected_revision": -1, "management": "observe",
        "depends_on": [{"kind": "k", "name": "n", "vales": []}, {"name": "/"}]}));
    assert_eq!(
        found,
        [
            "/deletion_protection: must be true or false, but is a string",
            "/depends_on/0/vales: is not a known field; did you mean `values`?",
            "/depends_on/1/kind: is required",
            "/depends_on/1/name: `/` is not a name: 1 to 253 of A-Z a-z 0-9 . _ : - and /, starting and ending with a letter or digit",
            "/expected_revision: must be a whole number from 0 on, but is -1",
            "/kind: must be a string, but is a number",
            "/kind_version: must be between 1 and 32767, but is 0",
            "/labels/a b: is not a label key: 1 to 253 of A-Z a-z 0-9 . _ - and /, starting and ending with a letter or digit",
            "/labels/t: must be a string, but is a number",
            "/management: `observe` is not supported yet; leave it out or say `full`",
            "/naem: is not a known field; did you mean `name`?",
            "/name: is required",
        ]
    );
}

#[test]
fn an_unknown_field_with_no_near_name_is_told_the_known_ones() {
    let found =
        faults(json!({"type": "providerconfig", "name": "a", "kind": "k", "kind_version": 1, "zzz": 1}));
    assert_eq!(
        found,
        ["/zzz: is not a known field; known are type, name, kind, kind_version, is_default, spec, data"]
    );
    let found = parse(
        json!({"kind": "a", "kind_version": 1, "reactions": [{"name": "w", "trigger": "specchange",
        "emits": ["statuss"], "finaliser": "f"}], "max_inflght": 1}),
        None,
    );
    let lines: Vec<_> = found.unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "/max_inflght: is not a known field; did you mean `max_inflight`?",
            "/reactions/0/emits: `statuss` is not one of children, edges, configs, status, conditions, finalizer, operationOutput, sideEffect; did you mean `status`?",
            "/reactions/0/finaliser: is not a known field; did you mean `finalizer`?",
            "/reactions/0/trigger: `specchange` is not one of specChange, childrenSettled, deleteRequested, operation, reactor, resync; did you mean `specChange`?",
        ]
    );
}

#[test]
fn the_systems_labels_are_refused_from_users() {
    assert_eq!(
        faults(resource(|r| r["labels"] = json!({"converge.sh/app": "web"}))),
        ["/labels/converge.sh~1app: labels under `converge.sh/` are set by the system only"]
    );
    let many: serde_json::Map<_, _> = (0..65).map(|n| (format!("l{n}"), json!(""))).collect();
    assert_eq!(faults(resource(|r| r["labels"] = json!(many))), ["/labels: at most 64 labels are accepted"]);
}

#[test]
fn edges_are_checked_together() {
    let values = |field: &str| json!([{"dependent_field": field, "source_field": "/s"}]);
    let found = faults(resource(|r| {
        r["depends_on"] = json!([
            {"kind": "vpc", "name": "a"},
            {"kind": "x", "name": "b", "values": values("/net")},
            {"kind": "x", "name": "b", "values": values("/net/id")},
            {"kind": "x", "name": "c", "values": values("/n/deep")},
        ]);
    }));
    assert_eq!(
        found,
        [
            "/depends_on: /spec/n/deep: a value flow has no place here: `/n` is a number, which cannot hold `deep`",
            "/depends_on: /spec/net/id: a value flow writes `/net/id` inside `/net`, which another writes whole",
            "/depends_on: vpc/a depends on itself",
            "/depends_on: x/b is listed twice",
        ]
    );
}

#[test]
fn a_document_nested_too_deep_is_refused() {
    let deep = (0..crate::json::DEPTH_MAX).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(faults(resource(|r| r["spec"] = deep)), ["is nested deeper than 100 levels"]);
}

#[test]
fn the_bundle_of_a_config_is_base64_and_bounded() {
    let config = |data: Value| {
        parse(json!({"name": "c", "kind": "k", "kind_version": 1, "data": data}), Some("providerconfig"))
            .map_err(|faults| faults[0].to_string())
    };
    let Ok(Document::ProviderConfig(read)) = config(json!("aGVs\nbG8=\n")) else { panic!("refused") };
    assert_eq!(read.data.as_deref(), Some("aGVsbG8="));
    assert!(config(json!("hello?")).unwrap_err().starts_with("/data: is not base64"));
    let of = |bytes: usize| {
        use base64::Engine;
        json!(base64::engine::general_purpose::STANDARD.encode(vec![7; bytes]))
    };
    assert!(config(of(DATA_MAX)).is_ok());
    assert_eq!(config(of(DATA_MAX + 1)).unwrap_err(), "/data: is larger than 1048576 bytes");
    assert_eq!(config(of(DATA_MAX + 100)).unwrap_err(), "/data: is larger than 1048576 bytes");
}

#[test]
fn bindings_subscribe_to_known_transitions() {
    let binding = |transition: &str| {
        parse(
            json!({"type": "reactorbinding", "name": "b", "watch_kind": "lz", "transition": transition,
                "reactor": "sink", "label_match": {"tier": "pci"}}),
            None,
        )
        .map_err(|faults| faults[0].to_string())
    };
    for transition in TRANSITIONS {
        assert!(matches!(binding(transition), Ok(Document::ReactorBinding(b)) if b.enabled), "{transition}");
    }
    assert_eq!(
        binding("sync").unwrap_err(),
        "/transition: `sync` is not one of created, synced, ready, degraded, failed, deleted; did you mean `synced`?"
    );
}
