//! Which manifests are legal, and what is said of the ones that are.

use super::*;
use crate::document::{self, Document};
use serde_json::{Value, json};

fn faults(value: Value) -> Vec<String> {
    match document::parse(value, Some("kind")) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({"kind": "vpc", "kind_version": 1, "reactions": [
        {"name": "work", "trigger": "specChange", "emits": ["status"]}]});
    change(&mut value);
    value
}

fn with_reactions(reactions: Value) -> Vec<String> {
    faults(with(|m| m["reactions"] = reactions))
}

#[test]
fn every_rule_broken_is_listed() {
    let found = with_reactions(json!([
        {"name": "work", "trigger": "specChange", "emits": ["status"]},
        {"name": "work", "trigger": "specChange", "emits": []},
        {"name": "c1", "trigger": "specChange", "emits": ["children", "sideEffect"]},
        {"name": "c2", "trigger": "specChange", "emits": ["children", "conditions"]},
        {"name": "r1", "trigger": "childrenSettled"},
        {"name": "r2", "trigger": "childrenSettled"},
        {"name": "x1", "trigger": "reactor", "emits": ["sideEffect"]},
        {"name": "x2", "trigger": "reactor", "emits": ["sideEffect", "status"]},
        {"name": "op", "trigger": "operation"},
        {"name": "o1", "trigger": "operation", "verb": "v"},
        {"name": "o2", "trigger": "operation", "verb": "v"},
        {"name": "d0", "trigger": "deleteRequested"},
        {"name": "d1", "trigger": "deleteRequested", "finalizer": "f"},
        {"name": "d2", "trigger": "deleteRequested", "finalizer": "f"}
    ]));
    assert_eq!(
        found,
        [
            "/reactions/1: a kind has at most one reaction that works on specChange",
            "/reactions/1/name: `work` is already the name of reaction 0",
            "/reactions/10/verb: `v` is already the verb of reaction 9",
            "/reactions/11/finalizer: is required for deleteRequested, here or as the manifest's `finalizer_name`",
            "/reactions/13/finalizer: `f` is already the finalizer of reaction 12",
            "/reactions/2/emits: a composer may not emit `sideEffect`",
            "/reactions/2/emits: a composer must also emit `status` or `conditions`",
            "/reactions/3: a kind has at most one composer (a specChange reaction that emits children)",
            "/reactions/5: a kind has at most one rollup (a childrenSettled reaction)",
            "/reactions/7: a kind has at most one reactor reaction",
            "/reactions/7/emits: a reactor reaction emits `sideEffect` alone",
            "/reactions/8/verb: is required for an operation",
        ]
    );
}

#[test]
fn the_finalizer_may_stand_on_the_manifest() {
    let value = with(|m| {
        m["finalizer_name"] = json!("acme.io/vpc");
        m["reactions"].as_array_mut().unwrap().push(json!({"name": "undo", "trigger": "deleteRequested"}));
    });
    assert_eq!(faults(value), [""; 0]);
}

#[test]
fn kinds_have_names_and_versions_in_bounds_and_type_words_are_reserved() {
    for word in document::names::TYPE_WORDS {
        let found = faults(with(|m| m["kind"] = json!(word)));
        assert_eq!(
            found,
            [format!("/kind: `{word}` is the word for a type of document and cannot name a kind")]
        );
    }
    assert_eq!(faults(with(|m| m["kind"] = json!("Vpc"))).len(), 1);
    for version in [json!(0), json!(32768), json!(-1), json!(1.5), json!("1"), json!(null)] {
        let found = faults(with(|m| m["kind_version"] = version.clone()));
        assert!(
            matches!(found.as_slice(), [one] if one.starts_with("/kind_version: ")),
            "{version}: {found:?}"
        );
    }
    assert_eq!(faults(with(|m| m["kind_version"] = json!(32767))), [""; 0]);
}

#[test]
fn schemas_must_compile_but_a_dangling_reference_of_the_status_schema_only_warns() {
    let dangling = json!({"properties": {"t": {"$ref": "#/components/T"}}});
    let refused = |field: &str| faults(with(|m| m[field] = dangling.clone()));
    assert!(refused("spec_schema")[0].starts_with("/spec_schema: a $ref leads nowhere"));
    assert!(refused("config_schema")[0].starts_with("/config_schema: a $ref leads nowhere"));
    assert_eq!(refused("status_schema"), [""; 0]);
    let broken = faults(with(|m| m["status_schema"] = json!({"properties": {"t": {"type": "txt"}}})));
    assert!(broken[0].starts_with("/status_schema/properties/t/type: "), "{broken:?}");
}

#[test]
fn pointers_are_rooted_in_the_resource() {
    let found = faults(with(|m| {
        m["compare"] = json!({"ignore": ["/tags", "/spec/ok"], "sets": ["spec"]});
        m["immutable"] = json!(["/status/id"]);
        m["printer_columns"] =
            json!([{"name": "CIDR", "pointer": "/cidr"}, {"name": "", "pointer": "/spec/cidr"}]);
        m["prune_share_max"] = json!(1.5);
        m["sensitive"] = json!(["/spec/password"]);
    }));
    let places: Vec<_> = found.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "/compare/ignore/0",
            "/compare/sets/0",
            "/immutable/0",
            "/printer_columns/0/pointer",
            "/printer_columns/1/name",
            "/prune_share_max",
            "/sensitive"
        ]
    );
}

#[test]
fn a_kind_with_nothing_to_observe_cannot_opt_into_resync() {
    let composer = |recomposes: bool| {
        faults(
            json!({"kind": "a", "kind_version": 1, "resync_interval_secs": 60, "resync_recomposes": recomposes,
            "reactions": [{"name": "c", "trigger": "specChange", "emits": ["children", "status"]}]}),
        )
    };
    assert_eq!(composer(true), [""; 0]);
    assert_eq!(composer(false).len(), 1);
}

#[test]
fn policy_without_effect_is_warned_of_by_name() {
    let value = json!({"kind": "a", "kind_version": 1, "reactions": [
            {"name": "work", "trigger": "specChange", "emits": ["status"]},
            {"name": "op", "trigger": "operation", "verb": "x"},
            {"name": "see", "trigger": "resync"},
            {"name": "react", "trigger": "reactor", "emits": ["sideEffect"]}],
        "status_schema": {"$ref": "#/nowhere"}, "resync_interval_secs": 5, "resync_recomposes": true,
        "orphan_grace_secs": 30, "drift_policy": "heal", "recompose_on_children": true, "prune_share_max": 0.5,
        "compare": {}, "immutable": ["/spec/a"], "on_immutable_change": "refuse"});
    let Ok(Document::Kind(manifest)) = document::parse(value, None) else { panic!("illegal") };
    let found = warnings(&manifest);
    let names: Vec<_> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "status_schema",
            "reaction `op`",
            "reaction `react`",
            "resync_interval_secs",
            "drift_policy",
            "compare",
            "immutable",
            "on_immutable_change"
        ]
    );

    let quiet = json!({"kind": "a", "kind_version": 1, "resync_interval_secs": 0, "orphan_grace_secs": 0,
        "prune_share_max": 1, "recompose_on_children": false, "reactions": []});
    let Ok(Document::Kind(manifest)) = document::parse(quiet, Some("kind")) else { panic!("illegal") };
    assert_eq!(warnings(&manifest), [""; 0]);
}
