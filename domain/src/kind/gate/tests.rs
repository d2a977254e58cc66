//! What may and what may not become of a published version.

use super::*;
use crate::kind::{ImmutablePolicy, KindCommand, KindError, KindEvent, KindState, PrinterColumn};
use crate::schema::CompiledSchema;
use crate::{Timestamp, document};
use cqrs_es::test::TestFramework;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn manifest(change: impl FnOnce(&mut Value)) -> Manifest {
    let mut value = json!({
        "kind": "vpc", "kind_version": 1, "finalizer_name": "acme.io/vpc",
        "spec_schema": {"type": "object", "additionalProperties": false, "required": ["cidr"],
            "properties": {"cidr": {"type": "string", "description": "block"},
                           "net": {"type": "object", "additionalProperties": false, "properties": {}},
                           "open": {"type": "object"}}},
        "reactions": [{"name": "work", "trigger": "specChange", "emits": ["status"]},
                      {"name": "undo", "trigger": "deleteRequested", "emits": ["finalizer"]},
                      {"name": "op", "trigger": "operation", "verb": "rotate", "emits": ["operationOutput"]}],
    });
    change(&mut value);
    match document::parse(value, Some("kind")).unwrap() {
        document::Document::Kind(manifest) => *manifest,
        other => panic!("{other:?}"),
    }
}

fn breaks(change: impl FnOnce(&mut Value)) -> Vec<String> {
    breaking_changes(&manifest(|_| {}), &manifest(change))
}

fn published(manifest: Manifest, at: i64) -> KindEvent {
    KindEvent::Published { manifest: Arc::new(manifest), at: Timestamp(at) }
}

fn publish(manifest: Manifest, at: i64) -> KindCommand {
    KindCommand::Publish { manifest: Box::new(manifest), at: Timestamp(at) }
}

#[test]
fn publishing_creates_a_version() {
    TestFramework::<KindState>::with(())
        .given_no_previous_events()
        .when(publish(manifest(|_| {}), 1))
        .then_expect_events(vec![published(manifest(|_| {}), 1)]);
}

#[test]
fn publishing_the_same_again_appends_nothing() {
    TestFramework::<KindState>::with(())
        .given(vec![published(manifest(|_| {}), 1)])
        .when(publish(manifest(|_| {}), 2))
        .then_expect_events(vec![]);
    let bounded = |bound: Value| manifest(|m| m["spec_schema"]["maxProperties"] = bound);
    TestFramework::<KindState>::with(())
        .given(vec![published(bounded(json!(3)), 1)])
        .when(publish(bounded(json!(3.0)), 2))
        .then_expect_events(vec![]);
}

#[test]
fn policy_changes_apply() {
    let changed = || {
        let mut changed = manifest(|m| {
            m["description"] = json!("new");
            m["status_schema"] = json!({"type": "object"});
            m["compare"] = json!({"ignore": ["/spec/x"]});
            m["provider"] = json!("stdio");
            m["max_inflight"] = json!(7);
            m["task_deadline_secs"] = json!(60);
            m["prune_share_max"] = json!(0.5);
        });
        changed.printer_columns = vec![PrinterColumn { name: "CIDR".into(), pointer: "/spec/cidr".into() }];
        changed.on_immutable_change = Some(ImmutablePolicy::Replace);
        changed
    };
    TestFramework::<KindState>::with(())
        .given(vec![published(manifest(|_| {}), 1)])
        .when(publish(changed(), 2))
        .then_expect_events(vec![published(changed(), 2)]);
}

#[test]
fn a_breaking_change_is_refused_with_every_breaking_part() {
    TestFramework::<KindState>::with(())
        .given(vec![published(manifest(|_| {}), 1)])
        .when(publish(
            manifest(|m| {
                m["spec_schema"]["properties"]["cidr"]["minLength"] = json!(9);
                m["reactions"].as_array_mut().unwrap().pop();
                m["immutable"] = json!(["/spec/cidr"]);
            }),
            2,
        ))
        .then_expect_error(KindError::Breaking {
            kind: "vpc/v1".into(),
            changes: vec![
                "spec_schema#/properties/cidr/minLength is added".into(),
                "reaction `op` is removed".into(),
                "immutable: `/spec/cidr` becomes immutable".into(),
            ],
        });
}

#[test]
fn a_new_optional_property_of_a_closed_object_is_additive_and_so_are_annotations() {
    let none: [&str; 0] = [];
    assert_eq!(breaks(|m| m["spec_schema"]["properties"]["tags"] = json!({"type": "object"})), none);
    assert_eq!(
        breaks(|m| m["spec_schema"]["properties"]["net"]["properties"]["id"] = json!({"minLength": 3})),
        none
    );
    assert_eq!(
        breaks(|m| {
            m["spec_schema"]["title"] = json!("VPC");
            m["spec_schema"]["properties"]["cidr"]["description"] = json!("other");
            m["spec_schema"]["properties"]["cidr"]["examples"] = json!(["10.0.0.0/8"]);
        }),
        none
    );
}

#[test]
fn every_other_schema_change_is_breaking() {
    let changes: [fn(&mut Value); 16] = [
        |s| s["properties"]["open"]["properties"] = json!({"a": {"type": "string"}}),
        |s| s["properties"]["n"] = json!({"type": "string", "default": "x"}).clone().take_required(s),
        |s| s["required"] = json!(["cidr", "net"]),
        |s| s["required"] = json!([]),
        |s| s["properties"]["cidr"]["type"] = json!(["string", "null"]),
        |s| s["properties"]["cidr"]["default"] = json!("10.0.0.0/16"),
        |s| s["properties"]["cidr"]["enum"] = json!(["a"]),
        |s| s["additionalProperties"] = json!(true),
        |s| {
            s["properties"].as_object_mut().unwrap().remove("cidr");
            s["required"] = json!([]);
        },
        |s| s["properties"]["cidr"] = json!(true),
        |s| *s = json!(true),
        |s| s["not"] = json!({"required": ["x"]}),
        |s| s["minProperties"] = json!(2),
        |s| s["allOf"] = json!([{}]),
        |s| s["patternProperties"] = json!({"^x": {}}),
        |s| s["$defs"] = json!({"a": {}}),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert_ne!(breaks(|m| change(&mut m["spec_schema"])), [""; 0], "change {index}");
    }
    assert_eq!(
        breaks(|m| drop(m.as_object_mut().unwrap().remove("spec_schema"))),
        ["spec_schema is removed"]
    );
    assert_eq!(
        breaks(|m| m["config_schema"] = json!({})),
        ["config_schema is added where anything was valid"]
    );
}

/// Makes a new property required as well.
trait TakeRequired {
    fn take_required(self, schema: &mut Value) -> Value;
}

impl TakeRequired for Value {
    fn take_required(self, schema: &mut Value) -> Value {
        schema["required"] = json!(["cidr", "n"]);
        self
    }
}

#[test]
fn a_property_named_like_an_annotation_is_none() {
    let with = |schema: Value| manifest(|m| m["spec_schema"] = schema);
    let old = with(json!({"properties": {"description": {"type": "string"}}, "enum": [{"title": "a"}]}));
    let narrowed = with(json!({"properties": {"description": {"type": "number"}}, "enum": [{"title": "a"}]}));
    let other_data =
        with(json!({"properties": {"description": {"type": "string"}}, "enum": [{"title": "b"}]}));
    assert_eq!(breaking_changes(&old, &narrowed), ["spec_schema#/properties/description/type changes"]);
    assert_eq!(breaking_changes(&old, &other_data), ["spec_schema#/enum changes"]);
}

#[test]
fn widening_is_refused_where_it_may_narrow_the_whole() {
    let closed = json!({"additionalProperties": false, "properties": {"a": {}}});
    let wider = json!({"additionalProperties": false, "properties": {"a": {}, "b": {}}});
    let check = |wrap: &dyn Fn(&Value) -> Value| {
        let with = |inner: &Value| manifest(|m| m["spec_schema"] = wrap(inner));
        breaking_changes(&with(&closed), &with(&wider)).is_empty()
    };
    assert!(check(&|s| json!({"items": s})));
    assert!(check(&|s| json!({"allOf": [s]})));
    assert!(check(
        &|s| json!({"additionalProperties": s, "$defs": {"x": {}}, "properties": {"p": {"$ref": "#/$defs/x"}}})
    ));
    assert!(!check(&|s| json!({"not": s})));
    assert!(!check(&|s| json!({"oneOf": [s, {"required": ["b"]}]})));
    assert!(!check(&|s| json!({"if": s, "then": false})));
    assert!(!check(&|s| json!({"$defs": {"x": s}, "not": {"$ref": "#/$defs/x"}})));
    assert!(!check(&|s| json!({"properties": {"p": s, "q": {"not": {"$ref": "#/properties/p"}}}})));
    // A pattern had already accepted the name, under its own schema.
    assert!(!check(&|s| {
        let mut s = s.clone();
        s["patternProperties"] = json!({"^b$": {"type": "string"}});
        s
    }));
}

#[test]
fn reactions_keep_their_purpose() {
    let reaction = |index: usize, field: &'static str, value: Value| {
        breaks(move |m| m["reactions"][index][field] = value)
    };
    let nothing: [&str; 0] = [];
    assert_eq!(reaction(0, "emits", json!(["status", "conditions"])), nothing);
    assert_eq!(reaction(0, "emits", json!([])), ["reaction `work` emits less"]);
    assert_eq!(
        reaction(0, "emits", json!(["status", "children"])),
        ["reaction `work` emits what it did not"]
    );
    assert_eq!(reaction(2, "verb", json!("turn")), ["reaction `op`: verb rotate becomes turn"]);
    assert_eq!(reaction(0, "trigger", json!("resync")), ["reaction `work` answers another trigger"]);
    assert_eq!(reaction(1, "finalizer", json!("other")), ["finalizers acme.io/vpc become other"]);
    let add = |reaction: Value| breaks(|m| m["reactions"].as_array_mut().unwrap().push(reaction));
    assert_eq!(add(json!({"name": "observe", "trigger": "resync", "emits": ["status"]})), nothing);
    assert_eq!(add(json!({"name": "op2", "trigger": "operation", "verb": "x"})), nothing);
    assert_eq!(add(json!({"name": "roll", "trigger": "childrenSettled", "emits": ["status"]})).len(), 1);
    assert_eq!(add(json!({"name": "undo2", "trigger": "deleteRequested", "finalizer": "f"})).len(), 2);
}

/// Schemas of the shapes that the gate tells apart, with references among them.
fn schemas() -> impl Strategy<Value = Value> {
    let closed = Just(json!({"additionalProperties": false, "properties": {"a": {}}}));
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"$ref": "#/$defs/d"})),
        Just(json!({"$ref": "#/properties/a"})),
        closed.clone(),
        closed.prop_map(|mut schema| {
            schema["patternProperties"] = json!({"b": {"type": "null"}});
            schema
        }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        (inner.clone(), inner, 0_usize..9).prop_map(|(a, b, shape)| match shape {
            0 => json!({"additionalProperties": false, "properties": {"a": a, "c": b}}),
            1 => json!({"properties": {"a": a}, "required": ["a"]}),
            2 => json!({"not": a}),
            3 => json!({"oneOf": [a, b]}),
            4 => json!({"allOf": [a, b]}),
            5 => json!({"if": a, "then": b}),
            6 => json!({"items": a}),
            7 => json!({"properties": {"a": a}, "additionalProperties": b}),
            _ => json!({"anyOf": [a], "unevaluatedProperties": false}),
        })
    })
}

/// Something valid or invalid under many of them.
fn instances() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!("s")), Just(json!(null)), Just(json!(1)), Just(json!({}))];
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            prop::collection::btree_map("[abc]", inner.clone(), 0..3).prop_map(|fields| json!(fields)),
            prop::collection::vec(inner, 0..2).prop_map(|items| json!(items)),
        ]
    })
}

/// Every object inside a value, by pointer.
fn objects(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(name, field)| (format!("{at}/{name}"), field)));
                found.push(at);
            }
            Value::Array(items) => {
                open.extend(items.iter().enumerate().map(|(index, item)| (format!("{at}/{index}"), item)));
            }
            _ => {}
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    /// The promise of the gate: whatever it lets through, what was valid stays valid.
    #[test]
    fn no_accepted_change_of_a_schema_refuses_what_was_valid(
        root in schemas(), definition in schemas(), place: prop::sample::Index, edit in 0_usize..20,
        values in prop::collection::vec(instances(), 40),
    ) {
        let mut old = root;
        old["$defs"] = json!({"d": definition});
        let mut new = old.clone();
        let mut places = objects(&new);
        let closed = |at: &String| new.pointer(at).is_some_and(|s| s.get("additionalProperties") == Some(&json!(false)));
        // Most edits are the one that is let through: a new property in a closed object.
        if edit > 5 && places.iter().any(closed) {
            places.retain(closed);
        }
        let at = new.pointer_mut(&places[place.index(places.len())]).unwrap();
        match edit {
            0 => at["description"] = json!("text"),
            1 => at["title"] = json!({"type": "null"}),
            2 => at["required"] = json!([]),
            3 => at["additionalProperties"] = json!(true),
            4 => at["type"] = json!(["string", "object", "null"]),
            5 => at["b"] = json!({"type": "string"}),
            _ if at.get("properties").is_some() => at["properties"]["b"] = json!({"type": "string"}),
            _ => at["properties"] = json!({"b": {"type": "string"}}),
        }
        let mut changes = Vec::new();
        schema::breaking("s", Some(&old), Some(&new), &mut changes);
        if let (true, Ok(old), Ok(new)) =
            (changes.is_empty(), CompiledSchema::compile(&old), CompiledSchema::compile(&new))
        {
            for value in values {
                let became = new.violations(&value);
                prop_assert!(!old.violations(&value).is_empty() || became.is_empty(), "{value}: {became:?}");
            }
        }
    }
}
